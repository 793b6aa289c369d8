#include <braid/dist/mpi/detail/lifeline.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include <braid/core/error.h>
#include <braid/core/platform/machine.h>
#include <braid/core/platform/process.h>

namespace braid::dist::detail {
namespace {

using namespace std::chrono_literals;
using platform::Socket;
using Clock = std::chrono::steady_clock;

constexpr auto kUntilConnected = 20s;
constexpr int kBeats = 10;  // heartbeats in the time of patience
constexpr int kLost = 2;    // exit code after a rank has died or was stopped

// Lines of the protocol: `TOKEN RANK NAME`, answered by `TOKEN`; later `alive` (the heartbeat), `failed CODE WHY`,
// `bye`.
constexpr const char* kAlive = "alive";
constexpr const char* kBye = "bye";

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

/// `process 4711 on host`
std::string own_name() { return fmt::format("process {} on {}", platform::process_id(), platform::host_name()); }

}  // namespace

Lifeline::Lifeline(std::string program, int rank, int size, std::chrono::seconds patience, Socket::Reach reach,
                   const Broadcast& broadcast)
    : program_(std::move(program)), rank_(rank), size_(size), patience_(patience) {
  try {
    find_peers(reach, broadcast);
    for (const Peer& peer : peers_) peer.socket.watch_machine();
    const auto held = platform::hold_signals();  // the program's threads handle signals
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error& error) {
    throw Error(fmt::format("dist: {}", error.what()));
  }
}

void Lifeline::find_peers(Socket::Reach reach, const Broadcast& broadcast) {
  if (rank_ == 0) {
    platform::allow_many_files();  // thousands of ranks are more connections than are usually allowed
    const Socket listener = Socket::listening(reach);
    const std::string token = random_token();
    std::string rendezvous = fmt::format("{} {} {} {}", token, platform::boot_id(), listener.port(), patience_.count());
    for (const std::string& address : platform::own_addresses()) rendezvous += " " + address;
    broadcast(rendezvous);
    accept_all(listener, token);
  } else {
    connect(broadcast(""));
  }
}

/// On rank 0: accepts every other rank. Strangers take no time from ranks: whoever has called is heard in any order.
void Lifeline::accept_all(const Socket& listener, const std::string& token) {
  std::vector<Peer> callers;  // that have not introduced themselves
  const auto end = Clock::now() + kUntilConnected;
  while (static_cast<int>(peers_.size()) + 1 < size_) {
    check<Error>(Clock::now() < end, "dist: only {} of {} ranks have connected to rank 0", peers_.size() + 1, size_);
    std::vector<platform::Awaited> sockets{{&listener}};
    for (const Peer& caller : callers) sockets.push_back({&caller.socket});
    await(sockets, end);
    for (std::size_t i = 0; i < callers.size(); ++i)
      if (sockets[i + 1].is_ready) admit(callers[i], token);
    std::erase_if(callers, [](const Peer& caller) { return !caller.socket.is_open(); });
    if (sockets[0].is_ready) callers.push_back({.socket = listener.accepted(0ms)});
  }
  std::ranges::sort(peers_, {}, &Peer::rank);
}

/// Makes a caller whose first line is `TOKEN RANK NAME` a peer, and closes the connection of another.
void Lifeline::admit(Peer& caller, const std::string& token) {
  const bool is_there = caller.socket.receive();
  const std::optional<std::string> line = caller.socket.take_line();
  if (is_there && !line) return;
  Peer peer = std::move(caller);
  std::istringstream words(line.value_or(""));
  std::string their_token;
  if (!(words >> their_token >> peer.rank) || their_token != token || !peer.socket.send(token + "\n")) return;
  std::getline(words >> std::ws, peer.name);
  peers_.push_back(std::move(peer));
}

/// On another rank: tries the addresses of rank 0; loopback addresses only if both are on one machine.
void Lifeline::connect(const std::string& rendezvous) {
  std::istringstream words(rendezvous);
  std::string token, boot;
  int port = 0;
  std::chrono::seconds::rep patience = 0;
  words >> token >> boot >> port >> patience;
  patience_ = std::chrono::seconds(patience);
  for (std::string address; words >> address;) {
    if (address.starts_with("127.") && boot != platform::boot_id()) continue;
    Peer root{.socket = Socket::connected(address, port, 2s)};
    if (!root.socket.is_open() || !root.socket.send(fmt::format("{} {} {}\n", token, rank_, own_name()))) continue;
    if (root.socket.receive_line(5s) != token) continue;
    peers_.push_back(std::move(root));
    return;
  }
  throw Error(fmt::format("dist: rank {} cannot connect to rank 0 at any of its addresses", rank_));
}

Lifeline::~Lifeline() {
  leaves_ = true;
  if (rank_ > 0) peers_[0].socket.send(fmt::format("{}\n", kBye));
  thread_.join();  // on rank 0 after every other rank has said `bye`, elsewhere after rank 0 has closed its end
}

void Lifeline::watch() {
  std::vector<platform::Awaited> sockets;
  for (const Peer& peer : peers_) sockets.push_back({&peer.socket});
  const auto pause = std::chrono::milliseconds(patience_) / kBeats;
  auto next_beat = Clock::now();
  while (std::ranges::any_of(peers_, [](const Peer& peer) { return peer.socket.is_open(); })) {
    await(sockets, next_beat);
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (!sockets[i].is_ready || listen_to(peers_[i])) continue;
      if (rank_ > 0) return;
      peers_[i].socket = Socket();  // answers `bye`
    }
    if (Clock::now() < next_beat) continue;
    beat();
    next_beat = Clock::now() + pause;
  }
}

/// Returns false when the peer has left: after its `bye`, or when rank 0 has closed the connection after that of this
/// rank.
bool Lifeline::listen_to(Peer& peer) {
  peer.silence = 0;
  const bool is_there = peer.socket.receive();
  while (const std::optional<std::string> line = peer.socket.take_line()) {
    if (*line == kAlive) continue;
    if (*line == kBye) return false;
    std::istringstream words(*line);
    std::string failed, why;
    int code = 0;
    words >> failed >> code;
    std::getline(words >> std::ws, why);
    end(why, code);
  }
  if (!is_there && (rank_ == 0 || !leaves_)) lose(peer, "is gone: its process was killed or crashed");
  return is_there;
}

/// Counts silence in heartbeats of this rank, not in seconds: ranks that are stopped and continued together go on.
void Lifeline::beat() {
  const int most = rank_ <= 1 ? kBeats : kBeats + 2;  // rank 1 writes its line before the launcher ends it
  for (Peer& peer : peers_) {
    peer.socket.send(fmt::format("{}\n", kAlive));
    if (!peer.socket.is_open() || ++peer.silence <= most) continue;
    lose(peer, fmt::format("has not answered for {} s: it was stopped or hangs", patience_.count()));
  }
}

void Lifeline::lose(const Peer& peer, const std::string& how) {
  const std::string who = peer.rank == 0 ? "rank 0" : fmt::format("rank {} ({})", peer.rank, peer.name);
  end(rank_ <= 1 ? fmt::format("{} {}", who, how) : "", kLost);
}

void Lifeline::fail(const std::string& why, int code) {
  std::string line = why.substr(0, 4000);
  std::ranges::replace(line, '\n', ' ');
  if (rank_ == 0) end(line, code);
  std::this_thread::sleep_for(200ms);  // if rank 0 fails too, its own line comes first
  peers_[0].socket.send(fmt::format("failed {} rank {}: {}\n", code, rank_, line));
  std::this_thread::sleep_for(5s);  // this process ends when rank 0 answers or is found dead
  end(fmt::format("rank {}: {}", rank_, line), code);
}

/// Only the first call writes its line: the lock is never released.
void Lifeline::end(const std::string& line, int code) {
  ending_.lock();
  if (!line.empty()) {
    const std::string text = fmt::format("{}: {}\n", program_, line);
    std::fflush(stdout);
    platform::write_to_stderr(text);
  }
  for (const Peer& peer : peers_) peer.socket.send(fmt::format("failed {}\n", code));
  std::_Exit(code);
}

}  // namespace braid::dist::detail

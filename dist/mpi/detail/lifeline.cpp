#include <braid/dist/mpi/detail/lifeline.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include <braid/core/error.h>
#include <braid/core/platform/machine.h>
#include <braid/core/platform/process.h>
#include <braid/core/platform/signals.h>
#include <braid/core/platform/standard_streams.h>

namespace braid::dist::detail {
namespace {

using namespace std::chrono_literals;
using platform::Socket;

constexpr auto kPatience = 20s;  // until all ranks are connected
constexpr int kLost = 2;         // exit code after a rank has died

// Lines of the protocol: `TOKEN RANK NAME`, answered by `TOKEN`; later `failed CODE WHY`, or `bye`.
constexpr const char* kBye = "bye";

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

/// `process 4711 on host`
std::string own_name() { return fmt::format("process {} on {}", platform::process_id(), platform::host_name()); }

}  // namespace

Lifeline::Lifeline(std::string program, int rank, int size,
                   const std::function<std::string(const std::string&)>& broadcast)
    : program_(std::move(program)), rank_(rank), size_(size) {
  try {
    find_peers(broadcast);
  } catch (const std::system_error& error) {
    throw Error(fmt::format("dist: {}", error.what()));
  }
  for (const Peer& peer : peers_) peer.socket.watch_machine();
  const platform::HeldSignals held(platform::HeldSignals::Which::all);  // the program's threads handle signals
  thread_ = std::thread([this] { watch(); });
}

void Lifeline::find_peers(const std::function<std::string(const std::string&)>& broadcast) {
  std::tie(wake_, woken_) = Socket::pair();
  if (rank_ == 0) {
    platform::allow_many_files();  // thousands of ranks are more connections than are usually allowed
    const Socket listener = Socket::listening();
    const std::string token = random_token();
    std::string rendezvous = fmt::format("{} {} {}", token, platform::boot_id(), listener.port());
    for (const std::string& address : platform::own_addresses()) rendezvous += " " + address;
    broadcast(rendezvous);
    accept_all(listener, token);
  } else {
    connect(broadcast(""));
  }
}

/// On rank 0: accepts every other rank, which sends `TOKEN RANK NAME`.
void Lifeline::accept_all(const Socket& listener, const std::string& token) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (static_cast<int>(peers_.size()) + 1 < size_) {
    check<Error>(std::chrono::steady_clock::now() < end, "dist: only {} of {} ranks have connected to rank 0",
                 peers_.size() + 1, size_);
    Peer peer{.socket = listener.accepted(100ms)};
    if (!peer.socket.is_open()) continue;
    std::istringstream line(peer.socket.receive_line(2s));
    std::string their_token;
    if (!(line >> their_token >> peer.rank) || their_token != token || !peer.socket.send(token + "\n")) continue;
    std::getline(line >> std::ws, peer.name);
    peers_.push_back(std::move(peer));
  }
  std::ranges::sort(peers_, {}, &Peer::rank);
}

/// On another rank: tries the addresses of rank 0; loopback addresses only if both are on one machine.
void Lifeline::connect(const std::string& rendezvous) {
  std::istringstream words(rendezvous);
  std::string token, boot;
  int port = 0;
  words >> token >> boot >> port;
  for (std::string address; words >> address;) {
    if (address.starts_with("127.") && boot != platform::boot_id()) continue;
    Peer root{.name = "rank 0", .socket = Socket::connected(address, port, 2s)};
    if (!root.socket.is_open() || !root.socket.send(fmt::format("{} {} {}\n", token, rank_, own_name()))) continue;
    if (root.socket.receive_line(5s) != token) continue;
    peers_.push_back(std::move(root));
    return;
  }
  throw Error(fmt::format("dist: rank {} cannot connect to rank 0 at any of its addresses", rank_));
}

Lifeline::~Lifeline() {
  if (rank_ == 0) {
    thread_.join();  // ends after every other rank has sent `bye`
    return;
  }
  wake_.send("x");
  thread_.join();
  for (const Peer& peer : peers_) peer.socket.send(fmt::format("{}\n", kBye));
}

void Lifeline::watch() {
  std::vector<platform::Awaited> sockets{{&woken_}};
  for (const Peer& peer : peers_) sockets.push_back({&peer.socket});
  for (std::size_t there = peers_.size(); there > 0;) {
    await(sockets);
    if (sockets[0].is_ready) return;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (!sockets[i + 1].is_ready || listen_to(peers_[i])) continue;
      sockets[i + 1].socket = nullptr;
      --there;
    }
  }
}

/// Returns false after a `bye`.
bool Lifeline::listen_to(Peer& peer) {
  const bool is_there = peer.socket.receive(peer.unread);
  if (const std::size_t length = peer.unread.find('\n'); length != std::string::npos) {
    std::istringstream line(peer.unread.substr(0, length));
    std::string word, why;
    int code = 0;
    line >> word >> code;
    if (word == kBye) return false;
    std::getline(line >> std::ws, why);
    end(why, code);
  }
  if (is_there) return true;
  const std::string who = peer.rank == 0 ? "rank 0" : fmt::format("rank {} ({})", peer.rank, peer.name);
  end(rank_ <= 1 ? fmt::format("{} is gone: its process was killed or crashed", who) : "", kLost);
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
  if (rank_ == 0)
    for (const Peer& peer : peers_) peer.socket.send(fmt::format("failed {}\n", code));
  std::_Exit(code);
}

}  // namespace braid::dist::detail

#include <braid/dist/mpi/detail/lifeline.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <braid/core/platform/machine.h>

#include <tests/support.h>

namespace braid::lifeline_test {
namespace {

using namespace std::chrono_literals;
using dist::detail::Lifeline;
using platform::Socket;

/// What rank 0 tells the others.
struct Rendezvous {
  std::string token, boot;
  int port = 0;

  explicit Rendezvous(const std::string& text) { std::istringstream(text) >> token >> boot >> port; }
};

/// Two threads meet as ranks and leave each other, after `first` has had the time to connect as a stranger.
void meet(Socket::Reach reach, const std::function<void(const Rendezvous&)>& first) {
  std::promise<std::string> told;
  std::thread other([&] { Lifeline("test", 1, 2, 60s, reach, [&](const auto&) { return told.get_future().get(); }); });
  Lifeline("test", 0, 2, 60s, reach, [&](const std::string& text) {
    first(Rendezvous(text));
    told.set_value(text);
    return text;
  });
  other.join();
}

Socket connected(const Rendezvous& rendezvous) { return Socket::connected("127.0.0.1", rendezvous.port, 10s); }

/// The connection of a rank that has told its number and its name.
Socket joined(const std::string& text, const std::string& rank_and_name) {
  const Rendezvous rendezvous(text);
  Socket rank = connected(rendezvous);
  rank.send(rendezvous.token + " " + rank_and_name + "\n");
  return rank;
}

using Ended = std::pair<int, std::string>;  // the exit code of a process, and what it wrote

/// Calls `there` in a process of its own, `here` meanwhile. This one must have no other threads.
Ended ended(const std::function<void()>& there, const std::function<void()>& here = {}) {
  std::FILE* const written = std::tmpfile();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // instead of waiting forever
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(fileno(written), stream);
    [&]() noexcept { there(); }();  // an exception must not go on with the other tests
    _exit(7);
  }
  if (here) here();
  int status = -1;
  waitpid(child, &status, 0);
  std::string text(10000, '\0');
  std::rewind(written);
  text.resize(std::fread(text.data(), 1, text.size(), written));
  std::fclose(written);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

/// How a rank ends whose rank 0, the second that it calls, answers its first line, `answers` more, and then nothing.
/// `said` has the rank's lines.
Ended with_silent_root(int rank, int patience, int answers, std::vector<std::string>& said,
                       const std::function<void(Lifeline&)>& call) {
  const Socket listener = Socket::listening(Socket::Reach::this_machine);
  const auto told = fmt::format("token {} {} {} 127.0.0.1 127.0.0.1", platform::boot_id(), listener.port(), patience);
  const auto there = [&] {
    Lifeline lifeline("test", rank, 3, 60s, Socket::Reach::this_machine, [&](const auto&) { return told; });
    call(lifeline);
  };
  return ended(there, [&] {
    Socket to_a_stranger = listener.accepted(10s);
    to_a_stranger.receive_line(10s), to_a_stranger.send("another token\n");
    Socket caller = listener.accepted(10s);
    while (const std::optional<std::string> line = caller.receive_line(10s)) {
      if (static_cast<int>(said.size()) <= answers) caller.send(said.empty() ? "token\n" : "alive\n");
      said.push_back(*line);
    }
  });
}

TEST(Lifeline, DoesNotWaitForStrangers) {
  std::vector<Socket> strangers;
  meet(Socket::Reach::this_machine, [&](const Rendezvous& rendezvous) {
    for (int i = 0; i < 30; ++i) strangers.push_back(connected(rendezvous));  // send nothing
  });
  for (Socket& stranger : strangers) EXPECT_FALSE(stranger.receive());
}

TEST(Lifeline, ClosesStrangers) {
  for (const char* kind : {"no rank", "another token", "garbage", "gone", "a long line"}) {
    Socket stranger;
    meet(Socket::Reach::this_machine, [&](const Rendezvous& rendezvous) {
      stranger = connected(rendezvous);
      ASSERT_TRUE(stranger.is_open());
      if (kind == std::string("no rank")) stranger.send(rendezvous.token + " one\n");
      if (kind == std::string("another token")) stranger.send(std::string(32, '0') + " 1 stranger\n");
      if (kind == std::string("garbage")) stranger.send(std::string("\0\xff\n\n\r", 5));
      if (kind == std::string("gone")) stranger = Socket();
      if (kind == std::string("a long line")) stranger.send(std::string(100000, 'x'));
    });
    EXPECT_FALSE(stranger.receive()) << kind;
    EXPECT_EQ(stranger.take_line(), std::nullopt) << kind;
  }
}

TEST(Lifeline, HasAnotherTokenEachTime) {
  std::string first, second;
  meet(Socket::Reach::this_machine, [&](const Rendezvous& rendezvous) { first = rendezvous.token; });
  meet(Socket::Reach::this_machine, [&](const Rendezvous& rendezvous) { second = rendezvous.token; });
  EXPECT_EQ(first.size(), 32U);
  EXPECT_NE(first, second);
}

TEST(Lifeline, AllowsAsManyFilesAsTheSystemDoes) {
  rlimit before{}, now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  now = {.rlim_cur = std::min<rlim_t>(before.rlim_max, 256), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  meet(Socket::Reach::this_machine, [](const Rendezvous&) {});
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Lifeline, ListensToThisMachineAlone) {
  for (const Socket::Reach reach : {Socket::Reach::this_machine, Socket::Reach::network})
    meet(reach, [&](const Rendezvous& rendezvous) {
      for (const std::string& address : platform::own_addresses())
        EXPECT_EQ(Socket::connected(address, rendezvous.port, 2s).is_open(),
                  reach == Socket::Reach::network || address == "127.0.0.1");
    });
}

TEST(Lifeline, EndsARankWhenRank0IsSilentForItsPatienceInHeartbeats) {
  // One every 0.1 s from 0 to 1 s; rank 2 leaves rank 1 the time to write the line.
  for (const auto& [rank, answers, expected] : std::vector<std::array<int, 3>>{{1, 0, 11}, {2, 0, 13}, {1, 1, 12}}) {
    std::vector<std::string> said;
    EXPECT_EQ(with_silent_root(rank, 1, answers, said, [](Lifeline&) { std::this_thread::sleep_for(60s); }),
              Ended(2, rank > 1 ? "" : "test: rank 0 has not answered for 1 s: it was stopped or hangs\n"));
    const auto beats = static_cast<int>(std::count(said.begin(), said.end(), "alive"));
    EXPECT_EQ(answers > 0 ? std::min(beats, expected) : beats, expected);  // answers may come late
    ASSERT_FALSE(said.empty());
    EXPECT_TRUE(said.front().starts_with(fmt::format("token {} process ", rank))) << said.front();
    EXPECT_EQ(said.back(), "failed 2");
  }
}

TEST(Lifeline, EndsWithARanksOwnLineWhenRank0DoesNotAnswer) {
  std::vector<std::string> said;
  const std::string line = "rank 1: one " + std::string(3996, 'x');  // 4000 bytes of it
  EXPECT_EQ(with_silent_root(1, 60, 0, said, [](Lifeline& l) { l.fail("one\n" + std::string(5000, 'x'), 3); }),
            Ended(3, "test: " + line + "\n"));
  EXPECT_NE(std::find(said.begin(), said.end(), "failed 3 " + line), said.end());
}

TEST(Lifeline, EndsRank0WithTheLineOfTheRankThatFailsOrIsLost) {
  const std::map<std::string, Ended> ways = {
      {"fails", {3, "step 1\ntest: rank 1: it is not finite\n"}},
      {"is silent", {2, "test: rank 1 (the first) has not answered for 1 s: it was stopped or hangs\n"}},
      {"is gone", {2, "test: rank 1 (the first) is gone: its process was killed or crashed\n"}},
      {"leaves", {7, ""}}};
  for (const auto& end : ways) {
    const std::string& way = end.first;
    const auto there = [&] {
      Socket first, second;
      Lifeline root("test", 0, 3, way == "is silent" ? 1s : 60s, Socket::Reach::this_machine, [&](const auto& text) {
        second = joined(text, "2 the second");
        first = joined(text, "1 the first");
        return text;
      });
      if (way == "fails") fmt::print("step 1\n"), first.send("failed 3 rank 1: it is not finite\n");
      if (way == "fails" || way == "is silent") std::this_thread::sleep_for(60s);
      if (way == "is gone") first = Socket();  // while rank 0 leaves
      if (way == "leaves") {
        for (int i = 0; i < 50; ++i) second.send(i < 49 ? "alive\n" : "bye\n"), std::this_thread::sleep_for(1ms);
        int lines = 0;  // until rank 0 closes this connection alone: its answer and one heartbeat in 6 s
        while (second.receive_line(60s)) ++lines;
        if (lines > 3) _exit(8);
        first.send("bye\n");
      }
    };
    EXPECT_EQ(ended(there), end.second) << way;
  }
}

TEST(Lifeline, SaysWhoHasNotConnected) {
  const Socket listener = Socket::listening(Socket::Reach::this_machine);  // is not asked for rank 0 of another machine
  const auto told = [&](const std::string&) { return fmt::format("token elsewhere {} 60 127.0.0.1", listener.port()); };
  EXPECT_EQ(message_of([&] { Lifeline("test", 1, 2, 60s, Socket::Reach::network, told); }),
            "dist: rank 1 cannot connect to rank 0 at any of its addresses");
  EXPECT_FALSE(listener.accepted(0ms).is_open());
  Socket other;
  const auto tell = [&](const std::string& text) { return other = joined(text, "2 other"), text; };
  EXPECT_EQ(message_of([&] { Lifeline("test", 0, 3, 60s, Socket::Reach::this_machine, tell); }),
            "dist: only 2 of 3 ranks have connected to rank 0");
}

}  // namespace
}  // namespace braid::lifeline_test

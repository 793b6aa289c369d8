#include <braid/dist/mpi/detail/lifeline.h>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace braid::lifeline_test {
namespace {

using namespace std::chrono_literals;
using dist::detail::Lifeline;
using platform::Socket;

/// What rank 0 tells the others.
struct Rendezvous {
  std::string token, boot;
  int port = 0;
};

/// Two threads meet as ranks and leave each other, after `first` has had the time to connect as a stranger.
void meet(Socket::Reach reach, const std::function<void(const Rendezvous&)>& first) {
  std::promise<std::string> told;
  std::thread other([&] { Lifeline("test", 1, 2, 60s, reach, [&](const auto&) { return told.get_future().get(); }); });
  Lifeline("test", 0, 2, 60s, reach, [&](const std::string& text) {
    std::istringstream words(text);
    Rendezvous rendezvous;
    words >> rendezvous.token >> rendezvous.boot >> rendezvous.port;
    first(rendezvous);
    told.set_value(text);
    return text;
  });
  other.join();
}

Socket connected(const Rendezvous& rendezvous) { return Socket::connected("127.0.0.1", rendezvous.port, 10s); }

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

}  // namespace
}  // namespace braid::lifeline_test

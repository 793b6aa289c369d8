#include <braid/core/platform/sockets.h>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace braid::sockets_test {
namespace {

using namespace std::chrono_literals;
using platform::Socket;

/// Two sockets that are connected to each other.
std::pair<Socket, Socket> pair() {
  const Socket listener = Socket::listening(Socket::Reach::this_machine);
  Socket client = Socket::connected("127.0.0.1", listener.port(), 10s);
  return {std::move(client), listener.accepted(10s)};
}

TEST(Sockets, TalkOverThisMachine) {
  const Socket listener = Socket::listening(Socket::Reach::this_machine);
  EXPECT_FALSE(listener.accepted(1ms).is_open());
  Socket client = Socket::connected("127.0.0.1", listener.port(), 2s);
  Socket server = listener.accepted(2s);
  ASSERT_TRUE(client.is_open() && server.is_open());
  EXPECT_TRUE(client.send("one\ntw"));
  EXPECT_EQ(server.receive_line(2s), "one");
  EXPECT_TRUE(server.send("half"));
  EXPECT_EQ(client.receive_line(100ms), std::nullopt);
  EXPECT_TRUE(server.send("way\nmore\n"));
  EXPECT_EQ(client.receive_line(2s), "halfway");
  EXPECT_EQ(client.take_line(), "more");
  EXPECT_EQ(client.take_line(), std::nullopt);
}

TEST(Sockets, LimitTheLengthOfLines) {
  auto [reader, writer] = pair();
  EXPECT_TRUE(writer.send(std::string(Socket::kLongestLine - 1, 'x') + "\n"));
  EXPECT_EQ(reader.receive_line(2s), std::string(Socket::kLongestLine - 1, 'x'));
  EXPECT_TRUE(writer.send(std::string(Socket::kLongestLine, 'x') + "\n"));
  EXPECT_EQ(reader.receive_line(2s), std::nullopt);
  EXPECT_FALSE(reader.receive());
}

TEST(Sockets, ListenOnThisMachineAlone) {
  const Socket here = Socket::listening(Socket::Reach::this_machine), far = Socket::listening(Socket::Reach::network);
  for (const std::string& address : platform::own_addresses()) {
    EXPECT_EQ(Socket::connected(address, here.port(), 2s).is_open(), address == "127.0.0.1") << address;
    EXPECT_TRUE(Socket::connected(address, far.port(), 2s).is_open()) << address;
  }
}

TEST(Sockets, AreReadyWithBytesAndWhenTheirPeerIsGone) {
  auto [first, first_peer] = pair();
  auto [second, second_peer] = pair();
  const Socket none;
  std::vector<platform::Awaited> sockets = {{&first}, {&none}, {&second}};
  await(sockets, std::chrono::steady_clock::now() + 1ms);
  EXPECT_FALSE(sockets[0].is_ready || sockets[1].is_ready || sockets[2].is_ready);
  EXPECT_TRUE(second_peer.send("x"));
  const auto later = std::chrono::steady_clock::now() + 1min;
  await(sockets, later);
  EXPECT_FALSE(sockets[0].is_ready || sockets[1].is_ready);
  EXPECT_TRUE(sockets[2].is_ready);
  EXPECT_TRUE(second.receive());
  { const Socket closed = std::move(first_peer); }
  await(sockets, later);
  EXPECT_TRUE(sockets[0].is_ready);
  EXPECT_FALSE(sockets[1].is_ready || sockets[2].is_ready);
  EXPECT_FALSE(first.receive());
  while (first.send("to nobody")) std::this_thread::yield();  // the system takes what it does not know to be in vain
}

TEST(Sockets, WaitThroughSignals) {
  auto [first, second] = pair();
  std::signal(SIGALRM, [](int) {});
  std::thread sender([&peer = first, waiting = pthread_self()] {
    for (const char* text : {"x\n", "y"}) {
      std::this_thread::sleep_for(20ms);
      pthread_kill(waiting, SIGALRM);
      std::this_thread::sleep_for(20ms);
      peer.send(text);
    }
  });
  EXPECT_EQ(second.receive_line(2s), "x");
  EXPECT_TRUE(second.receive());
  sender.join();
  std::signal(SIGALRM, SIG_DFL);
}

}  // namespace
}  // namespace braid::sockets_test

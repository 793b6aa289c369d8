#include <braid/core/platform/sockets.h>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace braid::sockets_test {
namespace {

using namespace std::chrono_literals;
using platform::Socket;

TEST(Sockets, TalkOverThisMachine) {
  const Socket listener = Socket::listening();
  EXPECT_FALSE(listener.accepted(1ms).is_open());
  const Socket client = Socket::connected("127.0.0.1", listener.port(), 2s);
  const Socket server = listener.accepted(2s);
  ASSERT_TRUE(client.is_open() && server.is_open());
  EXPECT_TRUE(client.send("one\ntw"));
  EXPECT_EQ(server.receive_line(2s), "one");
  EXPECT_TRUE(server.send("half"));
  EXPECT_EQ(client.receive_line(100ms), "half");
}

TEST(Sockets, AreReadyWithBytesAndWhenTheirPeerIsGone) {
  auto [first, first_peer] = Socket::pair();
  auto [second, second_peer] = Socket::pair();
  std::vector<platform::Awaited> sockets = {{&first}, {nullptr}, {&second}};
  EXPECT_TRUE(second_peer.send("x"));
  await(sockets);
  EXPECT_FALSE(sockets[0].is_ready || sockets[1].is_ready);
  EXPECT_TRUE(sockets[2].is_ready);
  std::string text;
  EXPECT_TRUE(second.receive(text));
  { const Socket closed = std::move(first_peer); }
  await(sockets);
  EXPECT_TRUE(sockets[0].is_ready);
  EXPECT_FALSE(sockets[1].is_ready || sockets[2].is_ready);
  EXPECT_FALSE(first.receive(text));
  EXPECT_FALSE(first.send("to nobody"));
}

}  // namespace
}  // namespace braid::sockets_test

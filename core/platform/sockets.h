#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::platform {

struct Awaited;

/// A TCP socket over IPv4 that closes itself; programs that are started do not inherit it. Functions that fail throw
/// std::system_error.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)), unread_(std::move(other.unread_)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  enum class Reach { this_machine, network };
  static constexpr std::size_t kLongestLine = 8192;  ///< bytes

  /// Listens on the loopback address, or on every address of this machine, at a port that the system chooses.
  static Socket listening(Reach reach);
  /// Connects; the socket is not open if there is no answer in time.
  static Socket connected(const std::string& address, int port, std::chrono::milliseconds patience);

  bool is_open() const { return number_ >= 0; }
  int port() const;
  /// The next connection to a listening socket; not open if there is none in time.
  Socket accepted(std::chrono::milliseconds patience) const;
  /// Closes the connection when the peer's machine has not answered for six seconds.
  void watch_machine() const;
  /// Returns false if the peer is known to have closed the connection.
  bool send(const std::string& text) const;
  /// Waits for bytes and keeps them; returns false if the peer has closed the connection, or exceeds the longest line.
  bool receive();
  /// Takes the first line out of the bytes that were received, without its end; nothing if there is no whole line.
  std::optional<std::string> take_line();
  /// Waits for a line; nothing if it does not come in time.
  std::optional<std::string> receive_line(std::chrono::milliseconds patience);

 private:
  friend void await(std::vector<Awaited>& sockets, std::chrono::steady_clock::time_point until);
  int number_ = -1;
  std::string unread_;
};

/// A socket to wait for unless it is not open, and whether it has something to receive or has been closed by its peer.
struct Awaited {
  const Socket* socket;
  bool is_ready = false;
};

/// Waits until a socket is ready, a signal arrives, or the time has come.
void await(std::vector<Awaited>& sockets, std::chrono::steady_clock::time_point until);

/// The IPv4 addresses of this machine.
std::vector<std::string> own_addresses();

}  // namespace braid::platform

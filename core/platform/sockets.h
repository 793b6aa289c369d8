#pragma once
#include <chrono>
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
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// Listens on every address of this machine, at a port that the system chooses.
  static Socket listening();
  /// Connects; the socket is not open if there is no answer in time.
  static Socket connected(const std::string& address, int port, std::chrono::milliseconds patience);
  /// Two sockets in this process that are connected to each other.
  static std::pair<Socket, Socket> pair();

  bool is_open() const { return number_ >= 0; }
  int port() const;
  /// The next connection to a listening socket; not open if there is none in time.
  Socket accepted(std::chrono::milliseconds patience) const;
  /// Closes the connection when the peer's machine has not answered for six seconds.
  void watch_machine() const;
  /// Returns false if the peer has closed the connection.
  bool send(const std::string& text) const;
  /// Waits for bytes and appends them to `text`; returns false if the peer has closed the connection.
  bool receive(std::string& text) const;
  /// One line without its end; only its beginning on a timeout or if the peer closes the connection.
  std::string receive_line(std::chrono::milliseconds patience) const;

 private:
  friend void await(std::vector<Awaited>& sockets);
  int number_ = -1;
};

/// A socket to wait for, or null, and whether it has something to receive or has been closed by its peer.
struct Awaited {
  const Socket* socket;
  bool is_ready = false;
};

/// Waits until a socket is ready, or a signal arrives.
void await(std::vector<Awaited>& sockets);

/// The IPv4 addresses of this machine.
std::vector<std::string> own_addresses();

}  // namespace braid::platform

#pragma once
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace braid::dist::detail {

/// A TCP socket over IPv4 that closes itself. Functions that fail throw Error with the system's reason.
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

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int port() const;
  Socket accepted() const;
  /// Closes the connection when the peer's machine has not answered for six seconds.
  void watch_machine() const;
  /// Returns false if the peer has closed the connection.
  bool send(const std::string& text) const;
  /// Waits for bytes and appends them to `text`; returns false if the peer has closed the connection.
  bool receive(std::string& text) const;
  /// One line without its end; only its beginning on a timeout or if the peer closes the connection.
  std::string receive_line(std::chrono::milliseconds patience) const;

 private:
  int number_ = -1;
};

/// The IPv4 addresses of this machine.
std::vector<std::string> own_addresses();

/// An identifier that differs between machines, and between boots of one.
std::string boot_id();

}  // namespace braid::dist::detail

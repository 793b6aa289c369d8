#pragma once
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace braid::dist::detail {

/// A TCP socket over IPv4, which closes. Functions that fail throw Error with the system's reason.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  /// On every address of this machine, at a port that the system chose.
  static Socket listening();
  /// Not open when nobody answers within the time.
  static Socket connected(const std::string& address, int port, std::chrono::milliseconds patience);

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int port() const;
  Socket accepted() const;
  /// A peer whose machine is gone counts as closed after six seconds.
  void watch_machine() const;
  /// False when the other end is gone.
  bool send(const std::string& text) const;
  /// Appends what has come to `text`, waiting until something does; false when the other end is gone.
  bool receive(std::string& text) const;
  /// One line, without its end; what came of it when the time is over or the other end gone.
  std::string receive_line(std::chrono::milliseconds patience) const;

 private:
  int number_ = -1;
};

/// The IPv4 addresses of this machine.
std::vector<std::string> own_addresses();

/// Tells machines apart, whatever they are called.
std::string boot_id();

}  // namespace braid::dist::detail

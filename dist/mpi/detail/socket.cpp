#include <braid/dist/mpi/detail/socket.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include <braid/core/error.h>

namespace braid::dist::detail {
namespace {

using std::chrono::milliseconds;

int checked(int result, const char* what) {
  const int error = errno;
  check<Error>(result >= 0, "dist: {}: {}", what, std::strerror(error));
  return result;
}

Socket open_socket(int flags = 0) {
  return Socket(checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), "no socket"));
}

/// Whether the socket becomes readable or writable (`what`), or fails, in time.
bool await(int socket, short what, milliseconds patience) {
  pollfd entry{socket, what, 0};
  int result = 0;
  while ((result = poll(&entry, 1, static_cast<int>(patience.count()))) < 0 && errno == EINTR) {
  }
  return result == 1;
}

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Socket::~Socket() {
  if (is_open()) close(number_);
}

Socket Socket::listening() {
  Socket listener = open_socket(SOCK_NONBLOCK);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  checked(bind(listener.number(), reinterpret_cast<sockaddr*>(&any), sizeof any), "no port");
  checked(listen(listener.number(), SOMAXCONN), "no port");
  return listener;
}

Socket Socket::connected(const std::string& address, int port, milliseconds patience) {
  Socket socket = open_socket(SOCK_NONBLOCK);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, address.c_str(), &there.sin_addr);
  int error = 0;
  socklen_t size = sizeof error;
  const int result = connect(socket.number(), reinterpret_cast<sockaddr*>(&there), sizeof there);
  if (result != 0 && (errno != EINPROGRESS || !await(socket.number(), POLLOUT, patience))) return {};
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return {};
  fcntl(socket.number(), F_SETFL, 0);  // blocks from now on
  return socket;
}

int Socket::port() const {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  checked(getsockname(number_, reinterpret_cast<sockaddr*>(&here), &size), "no port");
  return ntohs(here.sin_port);
}

Socket Socket::accepted() const { return Socket(accept4(number_, nullptr, nullptr, SOCK_CLOEXEC)); }

void Socket::watch_machine() const {
  set_option(number_, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(number_, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set_option(number_, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set_option(number_, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set_option(number_, IPPROTO_TCP, TCP_USER_TIMEOUT, 6000);
}

bool Socket::send(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = ::send(number_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) done += static_cast<std::size_t>(sent);
  }
  return true;
}

bool Socket::receive(std::string& text) const {
  std::array<char, 4096> buffer;
  ssize_t came = 0;
  while ((came = recv(number_, buffer.data(), buffer.size(), 0)) < 0 && errno == EINTR) {
  }
  if (came > 0) text.append(buffer.data(), static_cast<std::size_t>(came));
  return came > 0;
}

std::string Socket::receive_line(milliseconds patience) const {
  std::string text;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (text.find('\n') == std::string::npos) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !await(number_, POLLIN, left) || !receive(text)) return text;
  }
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> own_addresses() {
  ifaddrs* list = nullptr;
  checked(getifaddrs(&list), "no addresses");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    addresses.emplace_back(inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()));
  }
  return addresses;
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

}  // namespace braid::dist::detail

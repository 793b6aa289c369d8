#include <braid/core/platform/sockets.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <system_error>

#include <braid/core/platform/files.h>

namespace braid::platform {
namespace {

using std::chrono::milliseconds;

#ifdef __APPLE__
constexpr int kIdle = TCP_KEEPALIVE, kNoSignal = 0;
#else
constexpr int kIdle = TCP_KEEPIDLE, kNoSignal = MSG_NOSIGNAL;
#endif

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

void set_blocking(int socket, bool blocking) { fcntl(socket, F_SETFL, blocking ? 0 : O_NONBLOCK); }

/// Makes a socket private to this program, and a lost connection an error instead of a signal. Lines are sent at once:
/// one that waits is lost when the process ends while bytes from its peer are unread.
int prepared(int socket) {
  if (socket < 0) return socket;
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
#ifdef __APPLE__
  set_option(socket, SOL_SOCKET, SO_NOSIGPIPE, 1);
#endif
  return socket;
}

/// A socket whose calls do not wait.
int open_socket() {
  const int number = prepared(checked(socket(AF_INET, SOCK_STREAM, 0), "no socket"));
  set_blocking(number, false);
  return number;
}

/// Whether the socket becomes readable or writable (`what`), or fails, in time.
bool becomes(int socket, short what, milliseconds patience) {
  pollfd entry{socket, what, 0};
  return uninterrupted([&] { return poll(&entry, 1, static_cast<int>(patience.count())); }) == 1;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(number_, other.number_);
  std::swap(unread_, other.unread_);
  return *this;
}

Socket::~Socket() {
  if (is_open()) close(number_);
}

Socket Socket::listening(Reach reach) {
  Socket listener(open_socket());
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(reach == Reach::network ? INADDR_ANY : INADDR_LOOPBACK);
  checked(bind(listener.number_, reinterpret_cast<sockaddr*>(&here), sizeof here), "no port");
  checked(listen(listener.number_, SOMAXCONN), "no port");
  return listener;
}

Socket Socket::connected(const std::string& address, int port, milliseconds patience) {
  Socket socket(open_socket());
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, address.c_str(), &there.sin_addr);
  int error = 0;
  socklen_t size = sizeof error;
  const int result = connect(socket.number_, reinterpret_cast<sockaddr*>(&there), sizeof there);
  if (result != 0 && (errno != EINPROGRESS || !becomes(socket.number_, POLLOUT, patience))) return {};
  getsockopt(socket.number_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return {};
  set_blocking(socket.number_, true);
  return socket;
}

int Socket::port() const {
  sockaddr_in here{};
  socklen_t size = sizeof here;
  checked(getsockname(number_, reinterpret_cast<sockaddr*>(&here), &size), "no port");
  return ntohs(here.sin_port);
}

Socket Socket::accepted(milliseconds patience) const {
  becomes(number_, POLLIN, patience);
  Socket socket(prepared(accept(number_, nullptr, nullptr)));
  if (socket.is_open()) set_blocking(socket.number_, true);  // macOS hands the listener's setting on
  return socket;
}

void Socket::watch_machine() const {
  set_option(number_, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(number_, IPPROTO_TCP, kIdle, 2);
  set_option(number_, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set_option(number_, IPPROTO_TCP, TCP_KEEPCNT, 2);
#ifdef __APPLE__
  set_option(number_, IPPROTO_TCP, TCP_RXT_CONNDROPTIME, 6);
#else
  set_option(number_, IPPROTO_TCP, TCP_USER_TIMEOUT, 6000);
#endif
}

bool Socket::send(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const auto sent = ::send(number_, text.data() + done, text.size() - done, kNoSignal);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) done += static_cast<std::size_t>(sent);
  }
  return true;
}

bool Socket::receive() {
  if (unread_.size() >= kLongestLine) return false;
  std::array<char, 4096> buffer;
  const auto came = uninterrupted([&] { return recv(number_, buffer.data(), buffer.size(), 0); });
  if (came > 0) unread_.append(buffer.data(), static_cast<std::size_t>(came));
  return came > 0;
}

std::optional<std::string> Socket::take_line() {
  const std::size_t length = unread_.find('\n');
  if (length == std::string::npos) return {};
  std::string line = unread_.substr(0, length);
  unread_.erase(0, length + 1);
  return line;
}

std::optional<std::string> Socket::receive_line(milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    if (std::optional<std::string> line = take_line()) return line;
    const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !becomes(number_, POLLIN, left) || !receive()) return {};
  }
}

void await(std::vector<Awaited>& sockets, std::chrono::steady_clock::time_point until) {
  std::vector<pollfd> entries;
  for (const Awaited& a : sockets) entries.push_back({a.socket->number_, POLLIN, 0});
  const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
  const int patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
  const bool any = poll(entries.data(), static_cast<nfds_t>(entries.size()), patience) > 0;
  for (std::size_t i = 0; i < entries.size(); ++i) sockets[i].is_ready = any && entries[i].revents != 0;
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

}  // namespace braid::platform

#include <braid/core/platform/standard_streams.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace braid::platform {
namespace {

#ifdef __APPLE__
constexpr short kNoReader = POLLHUP;
#else
constexpr short kNoReader = POLLERR;
#endif

}  // namespace

bool stdout_is_terminal() { return isatty(kStdout) == 1; }

bool stdout_has_no_reader() {
  pollfd reader{kStdout, POLLOUT, 0};
  return poll(&reader, 1, 0) == 1 && (reader.revents & kNoReader) != 0;
}

void reserve_standard_streams() {
  int file = 0;
  while ((file = open("/dev/null", O_RDONLY)) >= 0 && file <= STDERR_FILENO) {
  }
  if (file >= 0) close(file);
}

void discard_output(int stream) {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), flags = fcntl(stream, F_GETFD);
  dup2(nowhere, stream);
  fcntl(stream, F_SETFD, flags);
  close(nowhere);
}

int duplicate_of_stderr() { return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10); }

void write_to_stderr(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace braid::platform

#include <braid/core/platform/standard_streams.h>

#include <fcntl.h>
#include <unistd.h>

namespace braid::platform {

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

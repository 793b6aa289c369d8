#include "standard_streams.h"

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

}  // namespace braid::platform

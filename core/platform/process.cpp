#include <braid/core/platform/process.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __APPLE__
#include <limits.h>
#include <mach-o/dyld.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace braid::platform {

namespace fs = std::filesystem;

#ifdef __APPLE__

constexpr rlim_t kMostFiles = OPEN_MAX;  // that setrlimit accepts

fs::path program_file() {
  std::uint32_t size = 0;
  _NSGetExecutablePath(nullptr, &size);
  std::string path(size, '\0');
  return _NSGetExecutablePath(path.data(), &size) == 0 ? fs::path(path.c_str()) : fs::path();
}

#else

constexpr rlim_t kMostFiles = RLIM_INFINITY;

fs::path program_file() { return "/proc/self/exe"; }

#endif

int process_id() { return getpid(); }

void set_variable(const std::string& name, const std::string& value) {
  setenv(name.c_str(), value.c_str(), /*overwrite=*/0);
}

void allow_many_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kMostFiles);
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  return pthread_atfork(before, in_parent, in_child) == 0;
}

std::shared_ptr<void> hold_signals() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return {nullptr, [before](void*) { pthread_sigmask(SIG_SETMASK, &before, nullptr); }};
}

void prefer_huge_pages([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  madvise(block, bytes, MADV_HUGEPAGE);
#endif
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

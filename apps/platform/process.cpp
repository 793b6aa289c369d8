#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <crt_externs.h>
#include <sys/event.h>
#include <thread>
#else
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <braid/core/platform/process.h>

namespace braid::platform {
namespace {

namespace fs = std::filesystem;

#ifdef __APPLE__

char** environment() { return *_NSGetEnviron(); }

/// Ends this process when the parent does. Asking for the end of one that has ended is an event as well.
void end_with(pid_t parent) {
  std::thread([parent] {
    struct kevent end {};
    EV_SET(&end, parent, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, nullptr);
    kevent(kqueue(), &end, 1, &end, 1, nullptr);
    std::_Exit(1);
  }).detach();
}

#else

char** environment() { return environ; }

void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(1);  // the parent died before prctl
}

#endif

/// Why a child has ended with a status of waitpid; empty after exit code 0.
std::string failure_of(int status) {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return status == 0 ? "" : "exit code " + std::to_string(WEXITSTATUS(status));
}

/// What is written into a pipe until nobody can, without what is older than the last 4096 bytes and blanks at its end.
std::string end_of(int pipe) {
  constexpr std::size_t kMost = 4096;
  std::string text;
  char part[kMost];
  for (ssize_t got = 0; (got = ::read(pipe, part, sizeof(part))) > 0 || (got < 0 && errno == EINTR);) {
    text.append(part, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (text.size() > kMost) text.erase(0, text.size() - kMost);
  }
  return text.substr(0, text.find_last_not_of(" \n") + 1);
}

}  // namespace

fs::path program_folder() {
  std::error_code missing;
#ifdef __APPLE__
  const fs::path program = fs::canonical(program_file(), missing);
#else
  const fs::path program = fs::read_symlink(program_file(), missing);
#endif
  return missing ? fs::current_path() : program.parent_path();
}

std::string run_program(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<const char*> line{path.c_str()};
  for (const std::string& argument : arguments) line.push_back(argument.c_str());
  line.push_back(nullptr);
  pid_t child = 0;
  int status = 0, errors[2];
  if (pipe(errors) != 0) return std::strerror(errno);
  for (const int end : errors) fcntl(end, F_SETFD, FD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
  posix_spawnattr_t attributes;  // the program can be interrupted even if this thread blocks signals
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error =
      posix_spawn(&child, path.c_str(), &actions, &attributes, const_cast<char**>(line.data()), environment());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(errors[1]);
  const std::string said = end_of(errors[0]);
  ::close(errors[0]);
  if (error != 0) return std::strerror(error);
  waitpid(child, &status, 0);
  return status == 0 || said.empty() ? failure_of(status) : said.substr(said.rfind('\n') + 1);
}

int start_child(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child != 0) return child;
  end_with(parent);
  std::_Exit(work());  // without the parent's buffers and destructors
}

std::optional<EndedChild> ended_child() {
  int status = 0;
  const pid_t child = waitpid(-1, &status, WNOHANG);
  if (child <= 0) return {};
  return EndedChild{child, failure_of(status)};
}

void kill_child(int id) { kill(id, SIGKILL); }
void await_child(int id) { waitpid(id, nullptr, 0); }

}  // namespace braid::platform

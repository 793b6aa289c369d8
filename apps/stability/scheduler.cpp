#include "scheduler.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>

#include <fmt/format.h>

#include <braid/core/error.h>

#include "../common/progress.h"

namespace braid::stability {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

/// Blocks SIGCHLD and the signals that interrupt, except ignored ones (as under nohup), and returns them on request, so
/// that none is lost whenever it arrives.
class WaitingSignals {
 public:
  WaitingSignals() {
    signal(SIGCHLD, SIG_DFL);  // while it is ignored, waitpid finds no children
    sigemptyset(&signals_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
      if (!is_ignored(signal)) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  ~WaitingSignals() { restore(); }
  WaitingSignals(const WaitingSignals&) = delete;
  WaitingSignals& operator=(const WaitingSignals&) = delete;

  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  int next() const {
    int signal = 0;
    sigwait(&signals_, &signal);
    return signal;
  }

 private:
  sigset_t signals_, before_;
};

[[noreturn]] void be_child(const Job& job, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl
  int status = 0;
  try {
    job.work();
  } catch (const std::exception& error) {
    fmt::print(stderr, "stability: {}: {}\n", job.name, error.what());
    status = 1;
  }
  _exit(status);  // without the parent's buffers and destructors
}

std::string cause(int status) {
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

class Scheduler {
 public:
  Scheduler(std::span<const Job> jobs, int parallel, std::size_t total)
      : jobs_(jobs),
        parallel_(static_cast<std::size_t>(parallel)),
        done_(total - jobs.size()),
        progress_("run", static_cast<std::int64_t>(total), static_cast<std::int64_t>(done_)) {
    for (const Job& job : jobs) seconds_left_ += job.seconds;
  }

  Outcome run() {
    show();
    while (!outcome_.interrupted && (next_ < jobs_.size() || !running_.empty())) {
      while (next_ < jobs_.size() && running_.size() < parallel_) start(jobs_[next_++]);
      outcome_.interrupted = signals_.next() != SIGCHLD;
      int status = 0;
      for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;)  // one signal may report several children
        if (running_.contains(child)) finish(child, status);
    }
    stop();
    progress_.finish();
    return outcome_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void start(const Job& job) {
    std::fflush(nullptr);
    const pid_t parent = getpid(), child = fork();
    check<Error>(child >= 0, "{}: no process can be started: {}", job.name, std::strerror(errno));
    if (child == 0) {
      signals_.restore();
      be_child(job, parent);
    }
    running_[child] = &job;
  }

  void finish(pid_t child, int status) {
    const Job& job = *running_.extract(child).mapped();
    if (status != 0) {
      outcome_.lost.push_back(fmt::format("{} ({})", job.name, cause(status)));
      progress_.message(fmt::format("lost: {}", outcome_.lost.back()));
    }
    ++done_;
    seconds_left_ -= job.seconds;
    seconds_done_ += job.seconds;
    show();
  }

  void stop() {
    for (const auto& [child, job] : running_) kill(child, SIGKILL);
    for (const auto& [child, job] : running_) waitpid(child, nullptr, 0);
  }

  /// Scales the estimates of the remaining jobs by the pace of those done.
  void show() {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    const double pace = seconds_done_ > 0 ? elapsed / seconds_done_ : 1 / static_cast<double>(parallel_);
    progress_.update(static_cast<std::int64_t>(done_), fmt::format("{} at a time", parallel_), pace * seconds_left_);
  }

  std::span<const Job> jobs_;
  std::size_t parallel_, done_, next_ = 0;
  double seconds_left_ = 0, seconds_done_ = 0;
  std::map<pid_t, const Job*> running_;
  Outcome outcome_;
  WaitingSignals signals_;
  apps::Progress progress_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Outcome run_jobs(std::span<const Job> jobs, int parallel, std::size_t total) {
  return Scheduler(jobs, parallel, total).run();
}

}  // namespace braid::stability

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

#include <fmt/core.h>

#include <braid/core/error.h>

#include "../common/progress.h"

namespace braid::stability {
namespace {

volatile sig_atomic_t interrupted = 0;

/// While one is alive, SIGINT and SIGTERM end the waiting for children instead of the program.
class CatchInterrupts {
 public:
  CatchInterrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };  // no SA_RESTART: wait() must return
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~CatchInterrupts() { restore(); }
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;

  void restore() const {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }

 private:
  struct sigaction old_int_ {
  }, old_term_{};
};

[[noreturn]] void be_child(const Job& job, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before prctl
  int status = 0;
  try {
    job.work();
  } catch (const std::exception& error) {
    fmt::print(stderr, "stability: {}: {}\n", job.name, error.what());
    status = 1;
  }
  _exit(status);  // the parent's buffers and destructors are not ours
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
    while (interrupted == 0 && (next_ < jobs_.size() || !running_.empty())) {
      while (next_ < jobs_.size() && running_.size() < parallel_) start(jobs_[next_++]);
      int status = 0;
      const pid_t child = wait(&status);
      if (child > 0 && running_.contains(child)) finish(child, status);
    }
    stop();
    progress_.finish();
    outcome_.interrupted = interrupted != 0;
    return outcome_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void start(const Job& job) {
    std::fflush(nullptr);
    const pid_t parent = getpid(), child = fork();
    check<Error>(child >= 0, "{}: no process can be started: {}", job.name, std::strerror(errno));
    if (child == 0) {
      interrupts_.restore();
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

  /// The estimates are corrected by how long what is done really took.
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
  CatchInterrupts interrupts_;
  examples::Progress progress_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Outcome run_jobs(std::span<const Job> jobs, int parallel, std::size_t total) {
  return Scheduler(jobs, parallel, total).run();
}

}  // namespace braid::stability

#include "scheduler.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>

#include <fmt/format.h>

#include <braid/core/error.h>

#include "../common/progress.h"
#include "../platform/process.h"
#include "../platform/signals.h"

namespace braid::stability {
namespace {

using platform::HeldSignals;

/// Runs a job in its child process; returns the exit code.
int exit_code(const Job& job) {
  try {
    job.work();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "stability: {}: {}\n", job.name, error.what());
    return 1;
  }
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
      outcome_.interrupted = signals_.next() == HeldSignals::Signal::interruption;
      while (const auto child = platform::ended_child())
        if (running_.contains(child->id)) finish(*child);
    }
    stop();
    progress_.finish();
    return outcome_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void start(const Job& job) {
    const int child = platform::start_child([&] {
      signals_.release();
      return exit_code(job);
    });
    check<Error>(child >= 0, "{}: no process can be started: {}", job.name, std::strerror(errno));
    running_[child] = &job;
  }

  void finish(const platform::EndedChild& child) {
    const Job& job = *running_.extract(child.id).mapped();
    if (!child.failure.empty()) {
      outcome_.lost.push_back(fmt::format("{} ({})", job.name, child.failure));
      progress_.message(fmt::format("lost: {}", outcome_.lost.back()));
    }
    ++done_;
    seconds_left_ -= job.seconds;
    seconds_done_ += job.seconds;
    show();
  }

  void stop() {
    for (const auto& [child, job] : running_) platform::kill_child(child);
    for (const auto& [child, job] : running_) platform::await_child(child);
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
  std::map<int, const Job*> running_;
  Outcome outcome_;
  HeldSignals signals_{HeldSignals::Which::interruptions_and_ends_of_children};
  apps::Progress progress_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Outcome run_jobs(std::span<const Job> jobs, int parallel, std::size_t total) {
  return Scheduler(jobs, parallel, total).run();
}

}  // namespace braid::stability

#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace braid::stability {

/// Something to be done in a process of its own.
struct Job {
  std::string name;
  double seconds;  ///< about how long it takes
  std::function<void()> work;
};

struct Outcome {
  std::vector<std::string> lost;  ///< jobs whose process failed or was killed, and why
  bool interrupted = false;       ///< by SIGINT, SIGTERM or SIGHUP: jobs were stopped or not begun
};

/// Runs each job in a child process, `parallel` at a time, and shows the progress of `total` jobs of which the others
/// are done already. A child that dies takes nothing with it but its job, and all die with the parent.
/// Call it from the only thread: children are forks.
Outcome run_jobs(std::span<const Job> jobs, int parallel, std::size_t total);

}  // namespace braid::stability

#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace braid::stability {

/// Work for a process of its own.
struct Job {
  std::string name;
  double seconds;  ///< estimated duration
  std::function<void()> work;
};

struct Outcome {
  std::vector<std::string> lost;  ///< jobs whose process failed or was killed, with the reason
  bool interrupted = false;       ///< SIGINT, SIGTERM or SIGHUP arrived: jobs were stopped or not started
};

/// Runs each job in a child process, `parallel` at a time, and shows the progress of `total` jobs, of which the others
/// are done already. A child that dies loses only its own job; all children die with the parent. Call it only while the
/// process has no other threads: children are forks.
Outcome run_jobs(std::span<const Job> jobs, int parallel, std::size_t total);

}  // namespace braid::stability

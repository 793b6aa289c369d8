#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <mpi.h>

#include <braid/dist/mpi/communicator.h>
#include <braid/dist/mpi/detail/lifeline.h>
#include <braid/dist/mpi/detail/plan.h>

namespace braid::dist::detail {

/// MPI from its start to its end.
class Environment {
 public:
  /// Throws Error when it was started before.
  Environment();
  ~Environment();
  /// From now on what Open MPI writes to stderr is lost: of peers that are gone, mostly, which it cannot know.
  void silence();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  MPI_Comm comm = MPI_COMM_NULL;  ///< of all ranks, for this library alone
  int rank = 0, size = 1;

 private:
  int its_stderr_;
};

/// What a Communicator is made of.
struct World {
  Environment mpi;
  std::unique_ptr<Lifeline> lifeline;
  Traffic traffic;
  std::map<std::int64_t, std::vector<Stage>> plans;  // by the number of blocks
};

/// Throws Error with what MPI says of a result that is no success, but not before the lifeline had time to end this
/// process: a rank that is gone is the likeliest reason.
void check_mpi(int result);

/// Between looks at what has not come yet: the longer it takes, the more of the processor is left to others.
class Patience {
 public:
  void pause() const {
    using namespace std::chrono_literals;
    const auto waited = Clock::now() - since_;
    if (waited > 1ms)
      std::this_thread::sleep_for(std::min<Clock::duration>(waited / 20, 5ms));
    else if (waited > 20us)
      std::this_thread::yield();
  }
  /// Something has come.
  void begin_anew() { since_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_ = Clock::now();
};

}  // namespace braid::dist::detail

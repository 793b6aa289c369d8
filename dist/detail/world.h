#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <mpi.h>

#include <braid/dist/communicator.h>
#include <braid/dist/detail/lifeline.h>
#include <braid/dist/detail/plan.h>

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

/// Returns when `done()` holds; leaves the processor to others when that takes a while.
template <class Done>
void await(Done done) {
  using namespace std::chrono_literals;
  const auto start = std::chrono::steady_clock::now();
  while (!done()) {
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > 1ms)
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 20, 5ms));
    else if (waited > 20us)
      std::this_thread::yield();
  }
}

}  // namespace braid::dist::detail

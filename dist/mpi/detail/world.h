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
#include <braid/dist/mpi/detail/lifeline.h>
#include <braid/dist/mpi/detail/plan.h>

namespace braid::dist::detail {

/// The state of an MPICommunicator. MPI is initialized by its constructor and finalized by its destructor.
struct World {
  /// Throws Error if MPI was initialized before.
  World();
  ~World();

  MPI_Comm comm = MPI_COMM_NULL;  // all ranks; no other library sends messages in it
  int rank = 0, size = 1;
  int stderr_of_mpi;
  std::unique_ptr<Lifeline> lifeline;  // watches MPI_Finalize, too
  Traffic traffic;
  std::map<std::int64_t, std::vector<Stage>> plans;  // by the number of blocks
};

/// Throws Error with MPI's description if a call failed. It waits a second before: most likely a rank has died, and
/// then the lifeline ends this process with a better message.
void check_mpi(int result);

/// Calls `post(piece, count)` for pieces of at most 2^30 bytes: MPI counts in int.
void post_pieces(auto* bytes, std::size_t size, auto post) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  for (std::size_t at = 0; at < size; at += kPiece) post(bytes + at, static_cast<int>(std::min(kPiece, size - at)));
}

/// The pause between two checks for messages. It grows with the time waited, to leave the processor to others.
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

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_ = Clock::now();
};

}  // namespace braid::dist::detail

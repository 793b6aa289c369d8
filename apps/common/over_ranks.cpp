#include "over_ranks.h"

#include <algorithm>
#include <cstdlib>

#include <braid/core/parallel.h>
#include <braid/core/platform/process.h>
#include <braid/core/storage.h>
#ifdef BRAID_MPI
#include <braid/dist/mpi/communicator.h>
#endif

#include "../platform/standard_streams.h"
#include "run_main.h"

namespace braid::apps {
namespace {

/// The number of ranks that the launcher reports: mpirun of Open MPI, of MPICH and its derivatives, or srun.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* size = std::getenv(name)) return std::atoi(size);
  return 1;
}

std::shared_ptr<dist::Communicator> join_ranks([[maybe_unused]] std::string program,
                                               [[maybe_unused]] std::chrono::seconds patience) {
#ifdef BRAID_MPI
  return std::make_shared<dist::MPICommunicator>(std::move(program), patience);
#else
  throw ValueError(
      "this program was built without MPI and cannot run as several ranks; install MPI (Debian: libopenmpi-dev and "
      "openmpi-bin), configure and build it again");
#endif
}

}  // namespace

int over_ranks(std::string_view program, std::chrono::seconds patience,
               const std::function<int(const std::shared_ptr<dist::Communicator>&)>& body) {
  if (launched_ranks() <= 1) return body(std::make_shared<dist::Communicator>());
  const std::shared_ptr<dist::Communicator> ranks = join_ranks(std::string(program), patience);
  if (ranks->rank() > 0) platform::discard_output(platform::kStdout);
  const int sharing = ranks->sharing_processors();
  if (std::getenv("BRAID_NUM_THREADS") == nullptr) set_num_threads(std::max(1, num_threads() / sharing));
  try {
    return body(ranks);
  } catch (...) {
    const Failure failure = current_failure();
    release_cached_memory();
    if (failure.code != 0) ranks->fail(failure.why, failure.code);
    return 0;
  }
}

}  // namespace braid::apps

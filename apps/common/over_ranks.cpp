#include "over_ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <braid/core/parallel.h>
#include <braid/core/storage.h>

#include "run_main.h"

namespace braid::examples {
namespace {

/// How many ranks the launcher says that there are: mpirun of Open MPI, of MPICH and its relatives, srun.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* size = std::getenv(name)) return std::atoi(size);
  return 1;
}

void silence_stdout() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
}

}  // namespace

int over_ranks(std::string_view program, const std::function<int(const Ranks&)>& body) {
  if (launched_ranks() <= 1) return body(Ranks());
  const std::shared_ptr<OtherRanks> others = join_ranks(program);
  if (others->rank() > 0) silence_stdout();
  const int sharing = others->sharing_processors();
  if (std::getenv("BRAID_NUM_THREADS") == nullptr) set_num_threads(std::max(1, num_threads() / sharing));
  try {
    return body(Ranks(others));
  } catch (...) {
    const Failure failure = current_failure();
    release_cached_memory();
    if (failure.code != 0) others->fail(failure.why, failure.code);
    return 0;
  }
}

}  // namespace braid::examples

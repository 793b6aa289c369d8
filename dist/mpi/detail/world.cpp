#include <braid/dist/mpi/detail/world.h>

#include <string>

#include <fmt/format.h>

#include <braid/core/error.h>
#include <braid/core/platform/files.h>
#include <braid/core/platform/process.h>

namespace braid::dist::detail {

void check_mpi(int result) {
  if (result == MPI_SUCCESS) return;
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  throw Error("dist: " + text.substr(0, static_cast<std::size_t>(length)));
}

World::World() : stderr_of_mpi(platform::duplicate_of_stderr()) {
  platform::set_variable("OPAL_OUTPUT_STDERR_FD", fmt::format("{}", stderr_of_mpi));
  int started = 0, level = 0;
  check_mpi(MPI_Initialized(&started));
  check<Error>(started == 0, "dist: a process may have one MPICommunicator, and must not initialize MPI elsewhere");
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level));
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  check_mpi(MPI_Comm_rank(comm, &rank));
  check_mpi(MPI_Comm_size(comm, &size));
}

World::~World() {
  MPI_Comm_free(&comm);
  MPI_Finalize();
  platform::close(stderr_of_mpi);
}

}  // namespace braid::dist::detail

#include <braid/dist/mpi/communicator.h>

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iterator>

#include <fmt/core.h>

#include <braid/core/error.h>
#include <braid/core/files/checksum.h>
#include <braid/dist/mpi/detail/rank_sum.h>
#include <braid/dist/mpi/detail/world.h>

namespace braid::dist {

using detail::check_mpi;

namespace {

/// Collective operations that do not keep the processor while they wait.
void complete(MPI_Request request) {
  int done = 0;
  for (const detail::Patience patience; check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE)), done == 0;)
    patience.pause();
}

std::string broadcast_from(const detail::Environment& mpi, int root, const std::string& bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts in int
  std::string text = bytes;
  std::uint64_t size = text.size();
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(&size, 1, MPI_UINT64_T, root, mpi.comm, &request));
  complete(request);
  text.resize(size);
  for (std::size_t at = 0; at < size; at += kPiece) {
    const auto count = static_cast<int>(std::min<std::size_t>(kPiece, size - at));
    check_mpi(MPI_Ibcast(text.data() + at, count, MPI_BYTE, root, mpi.comm, &request));
    complete(request);
  }
  return text;
}

/// The whole program file: code that differs may add in another order.
std::string own_checksum() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return checksum(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// The processors that this process may use, and on which machine: equal where ranks get into each other's way.
std::string own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::string text = detail::boot_id();
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) text += CPU_ISSET(i, &set) ? '1' : '0';
  return text;
}

}  // namespace

MPICommunicator::MPICommunicator(std::string program) : world_(std::make_unique<detail::World>()) {
  try {
    world_->lifeline = std::make_unique<detail::Lifeline>(
        program, rank(), size(), [this](const std::string& text) { return broadcast_from(world_->mpi, 0, text); });
  } catch (const std::exception& error) {  // MPI_Finalize would wait for the others
    fmt::print(stderr, "{}: {}\n", program, error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  try {
    check_same("binary", own_checksum());
  } catch (const std::exception& error) {
    fail(error.what(), 2);
  }
  world_->mpi.silence();
}

MPICommunicator::~MPICommunicator() {
  if (std::uncaught_exceptions() > 0) fail("ended by an exception", 2);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(world_->mpi.comm, &request);
  complete(request);
  world_->lifeline.reset();
}

int MPICommunicator::rank() const { return world_->mpi.rank; }
int MPICommunicator::size() const { return world_->mpi.size; }

int MPICommunicator::sharing_processors() {
  const std::vector<std::string> all = gather(own_processors());
  return static_cast<int>(std::ranges::count(all, all[static_cast<std::size_t>(rank())]));
}

bool MPICommunicator::any(bool here) {
  int all = here ? 1 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, world_->mpi.comm, &request));
  complete(request);
  return all != 0;
}

std::string MPICommunicator::broadcast(const std::string& bytes) { return broadcast_from(world_->mpi, 0, bytes); }

std::vector<std::string> MPICommunicator::gather(const std::string& bytes) {
  std::vector<std::string> all;
  for (int root = 0; root < size(); ++root) all.push_back(broadcast_from(world_->mpi, root, bytes));
  return all;
}

void MPICommunicator::fail(const std::string& why, int code) { world_->lifeline->fail(why, code); }

Traffic MPICommunicator::traffic() const { return world_->traffic; }

std::unique_ptr<detail::BlockSum> MPICommunicator::block_sum(std::int64_t blocks, const std::vector<Tensor>& params) {
  return std::make_unique<detail::RankSum>(*world_, blocks, params);
}

}  // namespace braid::dist

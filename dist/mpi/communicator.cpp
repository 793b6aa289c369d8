#include <braid/dist/mpi/communicator.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <future>
#include <iterator>

#include <fmt/format.h>

#include <braid/core/error.h>
#include <braid/core/files/checksum.h>
#include <braid/core/platform/machine.h>
#include <braid/core/platform/process.h>
#include <braid/dist/mpi/detail/world.h>

namespace braid::dist {

using detail::check_mpi;

namespace {

constexpr std::chrono::seconds kStart(60);  // the least time for the ranks to meet

/// Waits for a collective operation without keeping the processor busy.
void complete(MPI_Request request) {
  int done = 0;
  for (const detail::Patience patience; check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE)), done == 0;)
    patience.pause();
}

std::string broadcast_from(const detail::World& world, int root, const std::string& bytes) {
  std::string text = bytes;
  std::uint64_t size = text.size();
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(&size, 1, MPI_UINT64_T, root, world.comm, &request));
  complete(request);
  text.resize(size);
  detail::post_pieces(text.data(), size, [&](char* piece, int count) {
    check_mpi(MPI_Ibcast(piece, count, MPI_BYTE, root, world.comm, &request));
    complete(request);
  });
  return text;
}

/// The checksum of the program file: other code may add in another order.
std::string own_checksum() {
  std::ifstream file(platform::program_file(), std::ios::binary);
  return checksum(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// Ends this process, with a line, unless it is destroyed in time: MPI waits for other processes without end. Rank 0
/// has less time than the others, so that it alone writes the line.
class Deadline {
 public:
  Deadline(const std::string& program, std::chrono::seconds limit) {
    const std::string line =
        fmt::format("{}: not all ranks have started within {} s: one hangs, was stopped or is another program\n",
                    program, limit.count());
    const char* rank = std::getenv("PMIX_RANK");  // MPI does not say it yet
    const bool leads = rank == nullptr || rank == std::string("0");
    const std::chrono::milliseconds patience = leads ? limit : limit * 6 / 5;
    const auto held = platform::hold_signals();  // the program's threads handle signals
    watch_ = std::async(std::launch::async, [=, met = met_.get_future()] {
      for (int part = 0; part < 10; ++part)  // the time for which this process is stopped does not count
        if (met.wait_for(patience / 10) == std::future_status::ready) return;
      platform::write_to_stderr(line);
      std::_Exit(2);
    });
  }

 private:
  std::future<void> watch_;  // its end waits for that of the thread
  std::promise<void> met_;   // its end ends the thread
};

}  // namespace

MPICommunicator::MPICommunicator(std::string program, std::chrono::seconds patience) {
  check_value(patience.count() >= 1 && patience.count() <= 1 << 24,
              "dist: patience must be from 1 to 2^24 seconds but is {}", patience.count());
  try {
    const Deadline until_started(program, std::max(patience, kStart));
    world_ = std::make_unique<detail::World>();
    const std::string machine = platform::boot_id() + platform::host_name();
    using Reach = platform::Socket::Reach;
    const Reach reach = any(broadcast(machine) != machine) ? Reach::network : Reach::this_machine;
    world_->lifeline = std::make_unique<detail::Lifeline>(program, rank(), size(), patience, reach,
                                                          [this](const std::string& text) { return broadcast(text); });
  } catch (const std::exception& error) {
    if (world_ == nullptr) throw;
    fmt::print(stderr, "{}: {}\n", program, error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);  // MPI_Finalize would wait for the others
  }
  try {
    check_same("binary", own_checksum());
  } catch (const std::exception& error) {
    fail(error.what(), 2);
  }
  platform::discard_output(world_->stderr_of_mpi);  // mostly that peers are gone, as the lifeline says
}

MPICommunicator::~MPICommunicator() {
  if (std::uncaught_exceptions() > 0) fail("ended by an exception", 2);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(world_->comm, &request);
  complete(request);
}

int MPICommunicator::rank() const { return world_->rank; }
int MPICommunicator::size() const { return world_->size; }

bool MPICommunicator::any(bool here) {
  int all = here ? 1 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, world_->comm, &request));
  complete(request);
  return all != 0;
}

std::string MPICommunicator::broadcast(const std::string& bytes) { return broadcast_from(*world_, 0, bytes); }

std::vector<std::string> MPICommunicator::gather(const std::string& bytes) {
  std::vector<std::string> all;
  for (int root = 0; root < size(); ++root) all.push_back(broadcast_from(*world_, root, bytes));
  return all;
}

void MPICommunicator::fail(const std::string& why, int code) { world_->lifeline->fail(why, code); }

Traffic MPICommunicator::traffic() const { return world_->traffic; }

}  // namespace braid::dist

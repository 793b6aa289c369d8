#pragma once
#include <chrono>

#include <braid/dist/communicator.h>

namespace braid::dist {

namespace detail {
struct World;
}

/// The ranks that `mpirun` or another MPI launcher started. They end together: when one dies or fails, all of them end
/// within seconds, and rank 0 (rank 1 if rank 0 is lost) writes one line to stderr. MPI does not report the death of a
/// process, so each rank also has a TCP connection to rank 0, which the system closes. On this connection a thread of
/// each rank sends a heartbeat, so that a process that was stopped is noticed, and a slow one is not mistaken for it.
class MPICommunicator final : public Communicator {
 public:
  /// Initializes MPI and connects the ranks. `program` begins the line that a failure writes. All ranks end after
  /// `patience` of rank 0 without a heartbeat of a rank, and when they have not met after that time or 60 s, whichever
  /// is longer. They also end if a connection fails or a rank runs another binary. Throws ValueError unless `patience`
  /// is from 1 s to 2^24 s, and Error if MPI was initialized before in this process.
  explicit MPICommunicator(std::string program, std::chrono::seconds patience = std::chrono::seconds(60));
  /// Waits until every rank destroys its communicator. In stack unwinding it ends all ranks, without the exception's
  /// text.
  ~MPICommunicator() override;

  int rank() const override;
  int size() const override;
  bool any(bool here) override;
  std::string broadcast(const std::string& bytes) override;
  std::vector<std::string> gather(const std::string& bytes) override;
  [[noreturn]] void fail(const std::string& why, int code) override;
  Traffic traffic() const override;
  std::unique_ptr<detail::BlockSum> block_sum(std::int64_t blocks, const std::vector<Tensor>& like) override;

 private:
  std::unique_ptr<detail::World> world_;
};

}  // namespace braid::dist

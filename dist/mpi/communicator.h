#pragma once
#include <braid/dist/communicator.h>

namespace braid::dist {

namespace detail {
struct World;
}

/// The ranks that `mpirun` or another launcher of MPI started. They end together: when one dies or fails, all of them
/// end within seconds, and rank 0 (or 1 when rank 0 is the one that died) writes one line to stderr. MPI does not
/// report that a process is gone; so each rank also has a TCP connection to rank 0, which the system closes.
class MPICommunicator final : public Communicator {
 public:
  /// Joins the ranks; `program` begins the line that an end by failure writes. Ends all ranks when a connection fails
  /// or a rank runs another binary. Throws Error in a process that has had one.
  explicit MPICommunicator(std::string program);
  /// Waits for all ranks to come here. Where an exception passes through, it ends all ranks instead: see fail().
  ~MPICommunicator() override;

  int rank() const override;
  int size() const override;
  int sharing_processors() override;
  bool any(bool here) override;
  std::string broadcast(const std::string& bytes) override;
  std::vector<std::string> gather(const std::string& bytes) override;
  [[noreturn]] void fail(const std::string& why, int code) override;
  Traffic traffic() const override;
  std::unique_ptr<detail::BlockSum> block_sum(std::int64_t blocks, const std::vector<Tensor>& params) override;

 private:
  std::unique_ptr<detail::World> world_;
};

}  // namespace braid::dist

#pragma once
#include <memory>
#include <string>
#include <vector>

#include <braid/dist/detail/block_sum.h>

namespace braid::dist {

/// The cost of the sums of this rank so far.
struct Traffic {
  double bytes_sent = 0;      ///< to other ranks
  double seconds_beside = 0;  ///< on messages and additions between vjps, while more of them were to come
  double seconds_after = 0;   ///< on messages, additions and waiting when the last vjp had run
  double seconds_open = 0;    ///< from the first message of a sum to its last
};

/// The ranks of a run: here one, this process; the ranks of MPI are an MPICommunicator. Every rank calls the functions
/// that are not const, in the same order.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const { return 0; }  ///< of this process, from 0 on
  virtual int size() const { return 1; }  ///< number of ranks

  /// The number of ranks that may use the processors that this one may use, itself included.
  virtual int sharing_processors() { return 1; }
  /// Whether it is true on any rank.
  virtual bool any(bool here) { return here; }
  /// The bytes that rank 0 passes.
  virtual std::string broadcast(const std::string& bytes) { return bytes; }
  /// The bytes of all ranks, in order.
  virtual std::vector<std::string> gather(const std::string& bytes) { return {bytes}; }
  /// Throws Error on all ranks, naming the first one that has another value than rank 0.
  void check_same(const std::string& what, const std::string& value);

  /// Ends all ranks with this exit code and one line on stderr, from rank 0: the first failure that it hears of.
  [[noreturn]] virtual void fail(const std::string& why, int code);

  virtual Traffic traffic() const { return {}; }  ///< of this rank since the beginning

  /// For accumulate(): a sum over the blocks of a batch, with gradients like `params`. Throws ValueError when there are
  /// more ranks than blocks.
  virtual std::unique_ptr<detail::BlockSum> block_sum(std::int64_t blocks, const std::vector<Tensor>& params);
};

}  // namespace braid::dist

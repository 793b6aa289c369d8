#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <braid/nn/optim/accumulate.h>

namespace braid::dist {

namespace detail {

/// The sums of some tensors, the gradients and the loss, over all blocks of a batch, in the order of nn::TreeSum, over
/// all ranks. Each rank adds the tensors of its own blocks, in any order.
class BlockSum {
 public:
  virtual ~BlockSum() = default;

  /// The blocks that this rank computes.
  virtual nn::BlockRange own_blocks() const = 0;
  virtual void add(std::int64_t block, std::size_t index, Tensor term) = 0;
  /// The sum of each tensor. Waits for the other ranks.
  virtual std::vector<Tensor> total() = 0;
};

}  // namespace detail

/// The cost of this rank's calls of accumulate() so far.
struct Traffic {
  double bytes_sent = 0;      ///< bytes sent to other ranks
  double seconds_beside = 0;  ///< for messages and additions between vjps, during the backward pass
  double seconds_after = 0;   ///< for messages, additions and waiting after the last vjp
  double seconds_open = 0;    ///< from the first message of each sum to its last
};

/// The ranks (processes) of a run. The base class is this process alone and needs no MPI; MPICommunicator is the ranks
/// that an MPI launcher started. Every rank must call the functions that are not const, in the same order.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const { return 0; }  ///< this process's rank, from 0 to size() - 1
  virtual int size() const { return 1; }  ///< number of ranks

  /// The number of ranks, this one included, that may run on the same processors of the same machine.
  int sharing_processors();
  /// Whether `here` is true on any rank.
  virtual bool any(bool here) { return here; }
  /// Returns the bytes that rank 0 passes.
  virtual std::string broadcast(const std::string& bytes) { return bytes; }
  /// Returns the bytes that each rank passes, in the order of ranks.
  virtual std::vector<std::string> gather(const std::string& bytes) { return {bytes}; }
  /// Throws Error on all ranks if `value` differs between ranks. The message names the first rank whose value differs
  /// from that of rank 0, and calls the value `what`.
  void check_same(const std::string& what, const std::string& value);

  /// Ends all ranks with this exit code and one line on stderr. If several fail, the first that reaches rank 0 counts.
  [[noreturn]] virtual void fail(const std::string& why, int code);

  virtual Traffic traffic() const { return {}; }  ///< the cost of the sums on this rank; all zero for a process alone

  /// Used by accumulate(): empty sums over the blocks of a batch, of tensors with the shapes and dtypes of `like`.
  /// Throws ValueError if there are more ranks than blocks.
  virtual std::unique_ptr<detail::BlockSum> block_sum(std::int64_t blocks, const std::vector<Tensor>& like);
};

}  // namespace braid::dist

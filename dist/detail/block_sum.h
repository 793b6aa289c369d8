#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <braid/dist/communicator.h>
#include <braid/nn/optim/accumulate.h>

namespace braid::dist::detail {

/// The sum of a loss and its gradients over the blocks of a batch along the tree of nn::TreeSum, on all ranks. Each
/// rank adds those of its own blocks, the gradients in any order; what is complete here goes on its way to the others
/// while more of them are computed.
class BlockSum {
 public:
  /// Throws ValueError when there are more ranks than blocks.
  BlockSum(Communicator& ranks, std::int64_t blocks, const std::vector<Tensor>& params);
  ~BlockSum();

  /// What this rank computes.
  nn::BlockRange own_blocks() const;
  void add_loss(std::int64_t block, double loss);
  void add_gradient(std::int64_t block, std::size_t param, Tensor gradient);
  /// Waits for the other ranks.
  std::pair<double, std::vector<Tensor>> total();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braid::dist::detail

#pragma once
#include <cstdint>
#include <vector>

#include <braid/nn/optim/accumulate.h>

namespace braid::dist::detail {

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

}  // namespace braid::dist::detail

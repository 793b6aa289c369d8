#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <braid/nn/optim/accumulate.h>

namespace braid::dist::detail {

/// The sum of the loss and of each gradient over all blocks of a batch, in the order of nn::TreeSum, over all ranks.
/// Each rank adds the loss and gradients of its own blocks, in any order.
class BlockSum {
 public:
  virtual ~BlockSum() = default;

  /// The blocks that this rank computes.
  virtual nn::BlockRange own_blocks() const = 0;
  virtual void add_loss(std::int64_t block, double loss) = 0;
  virtual void add_gradient(std::int64_t block, std::size_t param, Tensor gradient) = 0;
  /// The sums of the loss and of each gradient. Waits for the other ranks.
  virtual std::pair<double, std::vector<Tensor>> total() = 0;
};

}  // namespace braid::dist::detail

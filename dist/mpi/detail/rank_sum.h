#pragma once
#include <memory>

#include <braid/dist/detail/block_sum.h>

namespace braid::dist::detail {

struct World;

/// A BlockSum over MPI ranks. Sums that are complete on this rank travel to the others while it computes more
/// gradients.
class RankSum final : public BlockSum {
 public:
  RankSum(World& world, std::int64_t blocks, const std::vector<Tensor>& params);
  ~RankSum() override;

  nn::BlockRange own_blocks() const override;
  void add_loss(std::int64_t block, double loss) override;
  void add_gradient(std::int64_t block, std::size_t param, Tensor gradient) override;
  std::pair<double, std::vector<Tensor>> total() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braid::dist::detail

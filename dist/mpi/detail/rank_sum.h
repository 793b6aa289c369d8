#pragma once
#include <braid/dist/communicator.h>

namespace braid::dist::detail {

struct World;

/// A BlockSum over MPI ranks, of tensors with the shapes and dtypes of `like`. Sums that are complete on this rank
/// travel to the others while it computes more gradients.
std::unique_ptr<BlockSum> rank_sum(World& world, std::int64_t blocks, const std::vector<Tensor>& like);

}  // namespace braid::dist::detail

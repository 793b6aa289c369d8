#include <braid/mhc/connections/released/checkpoint_maps.h>

#include <braid/autograd/ops.h>

namespace braid::mhc {

MHCMaps CheckpointMaps::maps() const {
  const bool mixes = mixing.logits() > 0;
  const auto in_order = [&](const Var& rows) { return mixes ? comb_transposed(rows, mixing.n()) : rows; };
  return {.phi = transpose(in_order(fn)),
          .alpha = scale,
          .bias = in_order(base),
          .mixing = mixing,
          .eps = norm_eps,
          .pre_eps = pre_eps,
          .post_eps = post_eps,
          .post_magnitude = post_magnitude};
}

Var comb_transposed(const Var& rows, std::int64_t n) {
  const Shape row = rows.shape().without(0);
  const Var comb = reshape(slice(rows, 0, 2 * n, n * (n + 2)), Shape{n, n}.concat(row));
  return concat({slice(rows, 0, 0, 2 * n), reshape(transpose(comb, 0, 1), Shape{n * n}.concat(row))}, 0);
}

}  // namespace braid::mhc

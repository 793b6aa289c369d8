#include <braid/mhc/connections/released/checkpoint_maps.h>

#include <braid/autograd/ops.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/nn/init.h>

namespace braid::mhc {

void CheckpointMaps::initialize(const char* op, std::int64_t channels, ReleasedInit init, double fn_std,
                                double scale_at_start, Rng& rng, DType dtype) {
  check_value(channels >= 1, "{}: channels must be >= 1 but is {}", op, channels);
  check_value(pre_eps >= 0, "{}: hc_eps must be >= 0 but is {}", op, pre_eps);
  check_value(norm_eps >= 0, "{}: norm_eps must be >= 0 but is {}", op, norm_eps);
  check_value(fn_std >= 0, "{}: fn_std must be >= 0 but is {}", op, fn_std);
  const std::int64_t n = mixing.n(), rows = 2 * n + mixing.logits();
  const bool published = init == ReleasedInit::published;
  const double std = published ? 0.02 : fn_std;
  const Shape shape{rows, n * channels};
  fn = std > 0 ? nn::init::normal(shape, std, rng, dtype) : zeros(shape, dtype);
  base = published ? zeros({rows}, dtype) : residual_like_bias(mixing, dtype);
  scale = full({mixing.logits() > 0 ? 3 : 2}, published ? 1 : scale_at_start, dtype);
}

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

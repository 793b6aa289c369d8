#include <braid/autograd/ops/dropout.h>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/map.h>

namespace braid {

/// x / (1 - p) where rng's next draw keeps it, else 0: the op and, on dy, its vjp.
static Tensor dropped(const Tensor& x, double p, Rng rng) {
  auto keep = [p]<class T>(T x, T u) { return u < T(p) ? T{0} : x * T(1 / (1 - p)); };
  const DType computed = compute_dtype(x.dtype());
  return map("dropout", keep, x.to(computed), rand(x.shape(), rng, computed)).to(x.dtype());
}

Var detail::drop(const Var& x, double p, const Rng& rng) {
  check_value(0 <= p && p < 1, "dropout: p must lie in [0, 1) but is {}", p);
  check_floating("dropout", x.dtype());
  if (p == 0) return x;
  const auto map = [p, rng](const Tensor& x) { return dropped(x, p, rng); };
  return linear_map("dropout", x, map, map);
}

Var dropout(const Var& x, double p, Rng& rng) { return detail::drop(x, p, rng.split()); }

}  // namespace braid

#include <braid/autograd/ops/max.h>

#include <limits>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/where.h>
#include <braid/core/map.h>

namespace braid {

/// Records the selection y of x; dx = dy / (how many are equal to y) where x is equal to y, else 0; NaN where y is.
static Var record_selection(const char* op, const Var& x, Tensor y, const Axes& axes) {
  const auto vjp = [op, axes](const Tensor& dy, const Tensor& x, const Tensor& y) {
    auto equal = [](auto x, auto y) { return static_cast<decltype(x)>(x == y); };
    auto share = []<class T>(T chosen, T dy, T count) {
      return count == 0 ? std::numeric_limits<T>::quiet_NaN() : chosen == 0 ? T{0} : dy / count;  // NaN has no equal
    };
    const Shape kept = reduced_shape(op, x.shape(), axes, true);
    const Tensor chosen = map(op, equal, x, y.reshape(kept));
    return map(op, share, chosen, dy.reshape(kept), reduce_sum(chosen, axes, true));
  };
  const auto rule = [=](const Applied& at) {
    const Tensor shares = vjp(ones(at.y().shape(), at.y().dtype()), at.x().value(), at.y().value());
    return where(shares, shares * reshape(at.dy(), reduced_shape(op, shares.shape(), axes, true)), 0.0);
  };
  return record(
      op, y, {x}, [vjp, x = x.value(), y](const Tensor& dy) { return vjp(dy, x, y); }, rule);
}

Var max(const Var& x, const Axes& axes, KeepDims keep_dims) {
  return record_selection("max", x, reduce_max(x.value(), axes, keep_dims), axes);
}

Var min(const Var& x, const Axes& axes, KeepDims keep_dims) {
  return record_selection("min", x, reduce_min(x.value(), axes, keep_dims), axes);
}

}  // namespace braid

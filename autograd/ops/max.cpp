#include <braid/autograd/ops/max.h>

#include <limits>

#include <braid/core/map.h>

namespace braid {
namespace {

/// Records the selection y of x; dx = dy / (how many are equal to y) where x is equal to y, else 0; NaN where y is.
Var record_selection(const char* op, const Var& x, Tensor y, const Axes& axes) {
  const Shape kept = reduced_shape(op, x.shape(), axes, true);
  return record(op, y, {x}, [op, axes, kept, x = x.value(), y](const Tensor& dy) {
    auto equal = [](auto x, auto y) { return static_cast<decltype(x)>(x == y); };
    auto share = []<class T>(T chosen, T dy, T count) {
      return count == 0 ? std::numeric_limits<T>::quiet_NaN() : chosen == 0 ? T{0} : dy / count;  // NaN has no equal
    };
    const Tensor chosen = map(op, equal, x, y.reshape(kept));
    return map(op, share, chosen, dy.reshape(kept), reduce_sum(chosen, axes, true));
  });
}

}  // namespace

Var max(const Var& x, const Axes& axes, bool keep_dims) {
  return record_selection("max", x, reduce_max(x.value(), axes, keep_dims), axes);
}

Var min(const Var& x, const Axes& axes, bool keep_dims) {
  return record_selection("min", x, reduce_min(x.value(), axes, keep_dims), axes);
}

}  // namespace braid

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/autograd/ops/flip.h>

#include <algorithm>

namespace braid {

Var flip(const Var& x, const Axes& axes) {
  reduced_shape("flip", x.shape(), axes, true);  // checks the axes
  const auto flip = [axes](Tensor x) {
    for (int axis = 0; axis < x.rank(); ++axis)
      if (axes.empty() || std::ranges::any_of(axes, [&](int given) { return x.shape().index(given) == axis; }))
        x = x.slice(axis, -1, -x.size(axis) - 1, -1);
    return x;
  };
  return detail::linear_map("flip", x, flip, flip);
}

}  // namespace braid

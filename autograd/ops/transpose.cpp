#include <braid/autograd/ops/transpose.h>

namespace braid {

Var transpose(const Var& x, int axis_a, int axis_b) {
  return record("transpose", x.value().transpose(axis_a, axis_b), {x},
                [axis_a, axis_b](const Var& dy) { return transpose(dy, axis_a, axis_b); });
}

Var permute(const Var& x, const Axes& axes) {
  Tensor y = x.value().permute(axes);
  Axes inverse = axes;
  for (std::size_t i = 0; i < axes.size(); ++i)
    inverse[static_cast<std::size_t>(x.shape().index(axes[i]))] = static_cast<int>(i);
  return record("permute", std::move(y), {x}, [inverse](const Var& dy) { return permute(dy, inverse); });
}

Var Var::transpose(int axis_a, int axis_b) const { return braid::transpose(*this, axis_a, axis_b); }

Var Var::permute(std::span<const int> axes) const { return braid::permute(*this, Axes(axes.begin(), axes.end())); }

}  // namespace braid

#include <braid/autograd/ops/transpose.h>

namespace braid {

Var Var::transpose(int axis_a, int axis_b) const {
  return record("transpose", value_.transpose(axis_a, axis_b), {*this},
                [axis_a, axis_b](const Var& dy) { return dy.transpose(axis_a, axis_b); });
}

Var Var::permute(List<int> axes) const {
  Tensor y = value_.permute(axes);
  Axes inverse(axes.begin(), axes.end());
  for (std::size_t i = 0; i < axes.size(); ++i) inverse[shape().index(axes[i])] = static_cast<int>(i);
  return record("permute", std::move(y), {*this}, [inverse](const Var& dy) { return dy.permute(inverse); });
}

}  // namespace braid

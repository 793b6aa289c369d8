#include <braid/autograd/detail/tape_state.h>

#include <utility>

#include <braid/autograd/tape.h>

namespace braid::detail {

/// The transpose of a view: zeros of `shape` with dy at the view's elements.
static Var padded(const char* op, const Var& dy, const Shape& shape, const View& view) {
  Tensor dx = zeros(shape, dy.dtype());
  write_view(dx, view, dy.value());
  return record(op, std::move(dx), {dy}, [=](const Var& ddx) { return record_view(op, ddx, view); });
}

Var record_view(const char* op, const Var& x, View view) {
  Var y =
      record(op, view(x.value()), {x}, [=, shape = x.shape()](const Var& dy) { return padded(op, dy, shape, view); });
  if (y.requires_grad()) TapeState::of(y)->nodes.back().view = std::move(view);
  return y;
}

}  // namespace braid::detail

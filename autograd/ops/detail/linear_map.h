#pragma once
#include <braid/autograd/tape.h>

namespace braid::detail {

/// Records `y = forward(x)`, a linear map of Tensors with the transpose `transposed`, which is its vjp and its rule.
Var linear_map(const char* op, const Var& x, auto forward, auto transposed) {
  return record(op, forward(x.value()), {x}, [=](const Var& dy) { return linear_map(op, dy, transposed, forward); });
}

}  // namespace braid::detail

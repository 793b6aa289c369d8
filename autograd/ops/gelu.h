#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`, element by element: the approximation of GPT-2.
/// Throws DTypeError for i32. arXiv:1606.08415.
Var gelu(const Var& x);

/// `x (1 + erf(x / sqrt(2))) / 2`: the exact form, PyTorch's default, which is slower; otherwise like gelu.
Var gelu_erf(const Var& x);

}  // namespace braid

#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// x converted to `dtype`, element by element; x itself when it has that dtype. The gradient is converted back.
/// Integers have no gradient: `cast(x, DType::i32)` is a constant, which truncates towards zero; numbers outside the
/// range of i32 become its nearest end, and NaN becomes 0.
inline Var cast(const Var& x, DType dtype) { return x.to(dtype); }

}  // namespace braid

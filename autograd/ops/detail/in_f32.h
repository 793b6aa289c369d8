#pragma once
#include <braid/autograd/ops/cast.h>

namespace braid::detail {

/// x in the dtype that it is computed with: f32 for bf16. Others stay, for an op to refuse those that do not fit.
inline Var widened(const Var& x) { return x.value().defined() ? cast(x, compute_dtype(x.dtype())) : x; }

/// `op(x, others...)`, computed in f32 and rounded once to x's dtype if that is bf16.
Var in_f32(auto op, const Var& x, const auto&... others) { return cast(op(widened(x), widened(others)...), x.dtype()); }

}  // namespace braid::detail

#pragma once
#include <braid/autograd/ops/cast.h>

namespace braid::detail {

/// x in the dtype that it is computed with: f32 for bf16. Others stay, for an op to refuse those that do not fit.
inline Var widened(const Var& x) { return cast(x, compute_dtype(x.dtype())); }

/// `op`, which computes in its inputs' dtype, for those of bf16: computed in f32 and rounded once.
template <class Op, class... Vars>
Var in_f32(Op op, const Vars&... inputs) {
  return cast(op(widened(inputs)...), DType::bf16);
}

}  // namespace braid::detail

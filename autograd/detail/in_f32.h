#pragma once
#include <braid/autograd/ops/cast.h>

namespace braid::detail {

/// `op`, which computes in its inputs' dtype, for those of bf16: computed in f32 and rounded once.
template <class Op, class... Vars>
Var in_f32(Op op, const Vars&... inputs) {
  return cast(op(cast(inputs, DType::f32)...), DType::bf16);
}

}  // namespace braid::detail

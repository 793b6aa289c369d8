#pragma once
#include <braid/autograd/tape.h>

namespace braid {

/// a where `mask` is not zero, else b, with broadcasting; the mask has any dtype. Elements that are not chosen get no
/// gradient, so NaN among them does not spread. A number takes the dtype of the other operand. Throws ShapeError when
/// shapes do not broadcast, DTypeError when the dtypes of a and b differ, ValueError for a number outside i32.
Var where(const Tensor& mask, const Var& a, const Var& b);
inline Var where(const Tensor& mask, const Var& a, double b) { return where(mask, a, scalar(b, a.dtype(), "where")); }
inline Var where(const Tensor& mask, double a, const Var& b) { return where(mask, scalar(a, b.dtype(), "where"), b); }
/// A mask as numbers: a where it is not zero, else b. Throws ValueError for a number that dtype i32 does not have.
inline Tensor where(const Tensor& mask, double a, double b, DType dtype = DType::f32) {
  return where(mask, scalar(a, dtype, "where"), scalar(b, dtype, "where"));
}

}  // namespace braid

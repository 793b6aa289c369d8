#pragma once
#include <braid/autograd/tape.h>

namespace braid {

// Comparisons, element by element with numpy's broadcasting: the result is i32, 1 where the comparison holds and 0
// elsewhere, a mask for `where`. Comparisons with NaN give 0, except not_equal. The results are constants, also for
// inputs on a tape. A number takes the dtype of a. All throw ShapeError when shapes do not broadcast, DTypeError when
// dtypes differ, and ValueError for a number outside i32 where a is i32.

/// `a == b` as an i32 mask, with broadcasting.
Tensor equal(const Var& a, const Var& b);
/// `a != b` as an i32 mask, with broadcasting.
Tensor not_equal(const Var& a, const Var& b);
/// `a < b` as an i32 mask, with broadcasting.
Tensor less(const Var& a, const Var& b);
/// `a <= b` as an i32 mask, with broadcasting.
Tensor less_equal(const Var& a, const Var& b);
/// `a > b` as an i32 mask, with broadcasting.
Tensor greater(const Var& a, const Var& b);
/// `a >= b` as an i32 mask, with broadcasting.
Tensor greater_equal(const Var& a, const Var& b);

inline Tensor equal(const Var& a, double b) { return equal(a, scalar(b, a.dtype(), "equal")); }
inline Tensor not_equal(const Var& a, double b) { return not_equal(a, scalar(b, a.dtype(), "not_equal")); }
inline Tensor less(const Var& a, double b) { return less(a, scalar(b, a.dtype(), "less")); }
inline Tensor less_equal(const Var& a, double b) { return less_equal(a, scalar(b, a.dtype(), "less_equal")); }
inline Tensor greater(const Var& a, double b) { return greater(a, scalar(b, a.dtype(), "greater")); }
inline Tensor greater_equal(const Var& a, double b) { return greater_equal(a, scalar(b, a.dtype(), "greater_equal")); }

// The operators give masks as well, not bools: `if (a == b)` does not compile. Whether all elements are equal:
// identical(a, b). A number on the left takes the dtype of b.
inline Tensor operator==(const Var& a, const Var& b) { return equal(a, b); }          ///< equal
inline Tensor operator!=(const Var& a, const Var& b) { return not_equal(a, b); }      ///< not_equal
inline Tensor operator<(const Var& a, const Var& b) { return less(a, b); }            ///< less
inline Tensor operator<=(const Var& a, const Var& b) { return less_equal(a, b); }     ///< less_equal
inline Tensor operator>(const Var& a, const Var& b) { return greater(a, b); }         ///< greater
inline Tensor operator>=(const Var& a, const Var& b) { return greater_equal(a, b); }  ///< greater_equal

inline Tensor operator==(const Var& a, double b) { return equal(a, b); }
inline Tensor operator!=(const Var& a, double b) { return not_equal(a, b); }
inline Tensor operator<(const Var& a, double b) { return less(a, b); }
inline Tensor operator<=(const Var& a, double b) { return less_equal(a, b); }
inline Tensor operator>(const Var& a, double b) { return greater(a, b); }
inline Tensor operator>=(const Var& a, double b) { return greater_equal(a, b); }

inline Tensor operator==(double a, const Var& b) { return equal(scalar(a, b.dtype(), "equal"), b); }
inline Tensor operator!=(double a, const Var& b) { return not_equal(scalar(a, b.dtype(), "not_equal"), b); }
inline Tensor operator<(double a, const Var& b) { return less(scalar(a, b.dtype(), "less"), b); }
inline Tensor operator<=(double a, const Var& b) { return less_equal(scalar(a, b.dtype(), "less_equal"), b); }
inline Tensor operator>(double a, const Var& b) { return greater(scalar(a, b.dtype(), "greater"), b); }
inline Tensor operator>=(double a, const Var& b) { return greater_equal(scalar(a, b.dtype(), "greater_equal"), b); }

}  // namespace braid

#pragma once
#include <braid/autograd/tape.h>

namespace braid {

// Comparisons, element by element with numpy's broadcasting: the result is i32, 1 where the comparison holds and 0
// elsewhere, a mask for `where`. Comparisons with NaN give 0, except not_equal. The results are constants, also for
// inputs on a tape. A number takes the dtype of a. All throw ShapeError when shapes do not broadcast, DTypeError when
// dtypes differ, and ValueError for a number outside i32 where a is i32.

/// `a == b`
Tensor equal(const Var& a, const Var& b);
/// `a != b`
Tensor not_equal(const Var& a, const Var& b);
/// `a < b`
Tensor less(const Var& a, const Var& b);
/// `a <= b`
Tensor less_equal(const Var& a, const Var& b);
/// `a > b`
Tensor greater(const Var& a, const Var& b);
/// `a >= b`
Tensor greater_equal(const Var& a, const Var& b);

inline Tensor equal(const Var& a, double b) { return equal(a, scalar(b, a.dtype(), "equal")); }
inline Tensor not_equal(const Var& a, double b) { return not_equal(a, scalar(b, a.dtype(), "not_equal")); }
inline Tensor less(const Var& a, double b) { return less(a, scalar(b, a.dtype(), "less")); }
inline Tensor less_equal(const Var& a, double b) { return less_equal(a, scalar(b, a.dtype(), "less_equal")); }
inline Tensor greater(const Var& a, double b) { return greater(a, scalar(b, a.dtype(), "greater")); }
inline Tensor greater_equal(const Var& a, double b) { return greater_equal(a, scalar(b, a.dtype(), "greater_equal")); }

}  // namespace braid

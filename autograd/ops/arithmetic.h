#pragma once
#include <braid/autograd/tape.h>

namespace braid {

// Elementwise arithmetic with numpy's broadcasting. All throw ShapeError when shapes do not broadcast, DTypeError when
// dtypes differ, and ValueError for a number outside i32 where the other operand, whose dtype it takes, is
// i32. Integers wrap around where they overflow.

/// `a + b`, with broadcasting.
Var add(const Var& a, const Var& b);
/// `a - b`, with broadcasting.
Var sub(const Var& a, const Var& b);
/// `a * b`, with broadcasting.
Var mul(const Var& a, const Var& b);
/// `a / b`, with broadcasting; i32 truncates towards zero, as in C++. Throws ValueError when an integer b is 0.
Var div(const Var& a, const Var& b);

/// `-x`, element by element.
Var neg(const Var& x);
inline Var operator+(const Var& a, const Var& b) { return add(a, b); }  ///< add
inline Var operator-(const Var& a, const Var& b) { return sub(a, b); }  ///< sub
inline Var operator*(const Var& a, const Var& b) { return mul(a, b); }  ///< mul
inline Var operator/(const Var& a, const Var& b) { return div(a, b); }  ///< div
inline Var operator-(const Var& x) { return neg(x); }

inline Var operator+(const Var& a, double b) { return add(a, scalar(b, a.dtype(), "add")); }
inline Var operator+(double a, const Var& b) { return add(scalar(a, b.dtype(), "add"), b); }
inline Var operator-(const Var& a, double b) { return sub(a, scalar(b, a.dtype(), "sub")); }
inline Var operator-(double a, const Var& b) { return sub(scalar(a, b.dtype(), "sub"), b); }
inline Var operator*(const Var& a, double b) { return mul(a, scalar(b, a.dtype(), "mul")); }
inline Var operator*(double a, const Var& b) { return mul(scalar(a, b.dtype(), "mul"), b); }
inline Var operator/(const Var& a, double b) { return div(a, scalar(b, a.dtype(), "div")); }
inline Var operator/(double a, const Var& b) { return div(scalar(a, b.dtype(), "div"), b); }

// `x += y` makes x the sum: the tensor it held is not written to, and copies of x keep it. A Tensor x throws Error, and
// stays, where y is on a tape.
inline Var& operator+=(Var& x, const Var& y) { return x = x + y; }  ///< x becomes add(x, y)
inline Var& operator-=(Var& x, const Var& y) { return x = x - y; }  ///< x becomes sub(x, y)
inline Var& operator*=(Var& x, const Var& y) { return x = x * y; }  ///< x becomes mul(x, y)
inline Var& operator/=(Var& x, const Var& y) { return x = x / y; }  ///< x becomes div(x, y)
inline Tensor& operator+=(Tensor& x, const Var& y) { return x = x + y; }
inline Tensor& operator-=(Tensor& x, const Var& y) { return x = x - y; }
inline Tensor& operator*=(Tensor& x, const Var& y) { return x = x * y; }
inline Tensor& operator/=(Tensor& x, const Var& y) { return x = x / y; }
inline Var& operator+=(Var& x, double y) { return x = x + y; }
inline Var& operator-=(Var& x, double y) { return x = x - y; }
inline Var& operator*=(Var& x, double y) { return x = x * y; }
inline Var& operator/=(Var& x, double y) { return x = x / y; }
inline Tensor& operator+=(Tensor& x, double y) { return x = x + y; }
inline Tensor& operator-=(Tensor& x, double y) { return x = x - y; }
inline Tensor& operator*=(Tensor& x, double y) { return x = x * y; }
inline Tensor& operator/=(Tensor& x, double y) { return x = x / y; }

}  // namespace braid

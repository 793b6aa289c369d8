#pragma once
#include <cstdint>

namespace braid::kernels {

/// Vectorised kernels over contiguous rows [rows, width], for the machine that the program runs on. They subtract the
/// row's maximum, so that nothing overflows. Rows of width 0 are left alone.
template <class T>
struct Softmax {
  using Forward = void (*)(std::int64_t rows, std::int64_t width, const T* x, T* y);
  using Vjp = void (*)(std::int64_t rows, std::int64_t width, const T* dy, const T* y, T* dx);

  Forward softmax;
  Vjp softmax_vjp;
  Forward log_softmax;
  Vjp log_softmax_vjp;

  Forward logsumexp;  // y [rows]
  /// dy [rows], x [rows, width], y [rows] -> dx [rows, width]
  void (*logsumexp_vjp)(std::int64_t rows, std::int64_t width, const T* dy, const T* x, const T* y, T* dx);
};

/// T is float or double.
template <class T>
Softmax<T> softmax();

}  // namespace braid::kernels

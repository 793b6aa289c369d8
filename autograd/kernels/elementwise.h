#pragma once
#include <cstdint>

namespace braid::kernels {

/// Vectorised functions over `n` contiguous elements, for the machine that the program runs on. NaN and infinities
/// give what std:: gives.
template <class T>
struct Elementwise {
  using Forward = void (*)(const T* x, T* y, std::int64_t n);
  using Vjp = void (*)(const T* dy, const T* x, T* dx, std::int64_t n);

  Forward exp, log, tanh, sigmoid;
  Forward silu;
  Vjp silu_vjp;
  Forward gelu;  // the tanh approximation
  Vjp gelu_vjp;
};

/// T is float or double.
template <class T>
Elementwise<T> elementwise();

}  // namespace braid::kernels

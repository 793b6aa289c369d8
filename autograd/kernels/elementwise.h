#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// The kernels for the best instruction set of this processor, over `n` contiguous elements. NaN and infinities give
/// the results of std::. T is float, double or bfloat16.
template <class T>
struct ElementwiseKernels {
  using Forward = void (*)(const T* x, T* y, std::int64_t n);
  using Vjp = void (*)(const T* dy, const T* x, T* dx, std::int64_t n);

  /// A function with its derivative.
  struct Function {
    Forward value;
    Vjp vjp;
    Vjp second_vjp = nullptr;  // that of the derivative, if there is one
  };

  Forward exp, log, log1p, tanh, sigmoid;
  Function sin, cos, expm1, softplus, silu;
  Function gelu, gelu_erf;  // the tanh approximation, and exactly
  void (*binary_cross_entropy)(const T* x, const T* z, const T* w, T* y, std::int64_t n);
  void (*binary_cross_entropy_vjp)(const T* dy, const T* x, const T* z, const T* w, T* dx, std::int64_t n);
  void (*binary_cross_entropy_vjp_z)(const T* dy, const T* x, const T* w, T* dz, std::int64_t n);
  void (*kl_divergence)(const T* log_q, const T* p, T* y, std::int64_t n);
  void (*kl_divergence_vjp_p)(const T* dy, const T* log_q, const T* p, T* dp, std::int64_t n);
};

Tables<ElementwiseKernels> elementwise_kernels();

}  // namespace braid::kernels

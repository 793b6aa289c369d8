#pragma once
#include <braid/core/tensor.h>

namespace braid::kernels {

/// The functions of a kernel file for every scalar type, as compiled for one instruction set.
template <template <class> class Kernels>
struct Tables {
  Kernels<float> f32;
  Kernels<double> f64;

  template <class T>
  const Kernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>)
      return f32;
    else
      return f64;
  }

  /// `f(kernels)` with those of a dtype. Throws DTypeError naming `op` for integers.
  template <class F>
  auto dispatch(const char* op, DType dtype, F&& f) const {
    return dispatch_float(op, dtype, [&](auto zero) { return f(of<decltype(zero)>()); });
  }
};

/// The elements of a tensor as the argument of a kernel; null when it is undefined: not given, or not wanted.
struct In {
  const Tensor& tensor;

  template <class T>
  operator const T*() const {
    return tensor.defined() ? tensor.data<T>() : nullptr;
  }
};

/// The same for writing.
struct Out {
  Tensor& tensor;

  template <class T>
  operator T*() const {
    return tensor.defined() ? tensor.mutable_data<T>() : nullptr;
  }
};

}  // namespace braid::kernels

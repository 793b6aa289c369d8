#pragma once
#include <optional>

#include <braid/core/tensor.h>

namespace braid::kernels {

/// The functions of a kernel file for every scalar type, compiled for one instruction set. Those for bf16, which are
/// optional, read and write bfloat16 and compute in f32.
template <template <class> class Kernels>
struct Tables {
  Kernels<float> f32;
  Kernels<double> f64;
  std::optional<Kernels<bfloat16>> bf16 = {};

  template <class T>
  const Kernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>)
      return f32;
    else if constexpr (std::is_same_v<T, double>)
      return f64;
    else
      return *bf16;
  }

  /// Calls `f(kernels)` with the kernels of a dtype. Throws DTypeError naming `op` where there are none.
  auto dispatch(const char* op, DType dtype, auto&& f) const {
    if (dtype == DType::bf16 && bf16) return f(*bf16);
    return dispatch_float(op, dtype, [&]<class T>(T) { return f(of<T>()); });
  }
};

/// Passes a tensor's elements to a kernel; null if it is undefined.
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

#pragma once
#include <optional>

#include <braid/core/tensor.h>

namespace braid::kernels {

/// The functions of a kernel file for every scalar type, as compiled for one instruction set. Those of bf16 read and
/// write bfloat16 and compute in f32; not every file has them.
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

  /// `f(kernels)` with those of a dtype. Throws DTypeError naming `op` for integers, and where there are none for bf16.
  template <class F>
  auto dispatch(const char* op, DType dtype, F&& f) const {
    if (dtype == DType::bf16 && bf16) return f(*bf16);
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

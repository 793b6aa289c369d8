#pragma once
#include <type_traits>

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
};

}  // namespace braid::kernels

#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// The angles of each position, shared by its heads. T is float or double.
template <class T>
struct Rotation {
  std::int64_t length, heads, depth;
  std::int64_t first, pairs;  // the elements of a head from `first` on that turn; the others stay
  bool halves;                // a pair is (i, pairs + i), or else (2i, 2i + 1)
  const T *cosine, *sine;     // [length, pairs]
};

/// Rotates the pairs of elements: y = (a cos - b sin, a sin + b cos) for x = (a, b), or `back` by the same angle.
/// x, y [batch, length, heads, depth]. T is float or double.
template <class T>
using RotaryKernel = void (*)(const Rotation<T>& by, bool back, std::int64_t batch, const T* x, T* y);

/// The kernels for the best instruction set of this processor.
Tables<RotaryKernel> rotary_kernels();

}  // namespace braid::kernels

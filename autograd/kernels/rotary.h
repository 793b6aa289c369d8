#pragma once
#include <cstdint>

namespace braid::kernels {

/// Angles of one position, shared by its heads. T is float or double.
template <class T>
struct Rotation {
  std::int64_t pairs;
  const T *cosine, *sine;  // [pairs]
};

/// Turns the pairs of adjacent elements in each of `heads` rows: y = (a cos - b sin, a sin + b cos) for x = (a, b).
/// `inverse` turns them back. x, y [heads, 2 pairs].
void rotate(const Rotation<float>& by, bool inverse, std::int64_t heads, const float* x, float* y);
void rotate(const Rotation<double>& by, bool inverse, std::int64_t heads, const double* x, double* y);

}  // namespace braid::kernels

#pragma once
#include <cmath>
#include <span>
#include <vector>

#include <braid/core/tensor.h>

namespace braid {

/// |x| in f64, for bounds of sums.
inline Tensor magnitudes(const Tensor& x) {
  std::vector<double> values = x.to_vector<double>();
  for (double& v : values) v = std::abs(v);
  return Tensor::of<double>(x.shape(), std::span<const double>(values));
}

}  // namespace braid

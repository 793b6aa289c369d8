#pragma once
#include <braid/core/tensor.h>

namespace braid::nn {

/// The larger of two errors, NaN if one is.
double worse(double a, double b);

/// `max|a - b| / max(1, max|b|)`, b being the reference; NaN when a difference is. The sizes must be equal, the shapes
/// need not.
double relative_error(const Tensor& a, const Tensor& b);

}  // namespace braid::nn

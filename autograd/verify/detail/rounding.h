#pragma once
#include <functional>

#include <braid/core/tensor.h>

namespace braid::detail {

/// The rounding error of each element of y(t), f64, near t = 0: the size of its part that is not smooth. Where that is
/// not clear, because y bends or oscillates, smaller distances tell, and at last those of own(t).
Tensor rounding_errors(const std::function<Tensor(double t)>& y, const std::function<Tensor(double t)>& own);

}  // namespace braid::detail

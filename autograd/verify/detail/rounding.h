#pragma once
#include <functional>

#include <braid/autograd/probe.h>
#include <braid/core/random.h>
#include <braid/core/tensor.h>

namespace braid::detail {

/// Changes the last bits of every cotangent, as if vjps had rounded differently. Without it, large cotangents that
/// cancel exactly would hide the rounding error of their sum.
class RoundsDifferently : public Probe {
 public:
  explicit RoundsDifferently(Rng rng) : rng_(rng) {}
  void propagated(const RecordedOp&, std::vector<Tensor>& dxs) override;

 private:
  Rng rng_;
};

/// The rounding error of each element of y(t), f64, near t = 0: the size of its part that is not smooth. Where that is
/// not clear, because y bends or oscillates, smaller distances tell, and at last those of own(t).
Tensor rounding_errors(const std::function<Tensor(double t)>& y, const std::function<Tensor(double t)>& own);

}  // namespace braid::detail

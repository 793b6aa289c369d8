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

/// The rounding error of each element of y(t), f64, near t = 0: the size of its part that is not smooth. `beside_kinks`
/// takes values close together, where kinks and poles at some distance do not look like rounding; it misses the steps
/// of a coarse rounding that are wider than that distance.
Tensor rounding_errors(const std::function<Tensor(double t)>& y, bool beside_kinks = false);

}  // namespace braid::detail

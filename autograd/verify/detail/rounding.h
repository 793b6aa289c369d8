#pragma once
#include <functional>

#include <braid/autograd/probe.h>
#include <braid/core/random.h>
#include <braid/core/tensor.h>

namespace braid::detail {

/// Changes the last bits of every cotangent, as if vjps had rounded otherwise: large ones that cancel exactly hide what
/// their sum has lost.
class RoundsOtherwise : public Probe {
 public:
  explicit RoundsOtherwise(Rng rng) : rng_(rng) {}
  void propagated(const RecordedOp&, std::vector<Tensor>& dxs) override;

 private:
  Rng rng_;
};

/// The rounding error of each element of y(t), f64, near t = 0: what is not smooth in it.
Tensor rounding_errors(const std::function<Tensor(double t)>& y);

/// The same from close by, where kinks and poles at some distance do not look like rounding; stairs that are wider than
/// that distance do not show.
Tensor rounding_errors_beside_kinks(const std::function<Tensor(double t)>& y);

}  // namespace braid::detail

#include <braid/autograd/ops/binary_cross_entropy.h>

#include <algorithm>
#include <cmath>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/reduce_losses.h>
#include <braid/autograd/ops/softplus.h>

namespace braid {
namespace {

constexpr const char* kOp = "binary_cross_entropy_with_logits";

/// log(1 + exp(x)) = -log(sigmoid(-x))
template <class T>
T softplus(T x) {
  return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
}

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

/// All terms are positive, so that nothing cancels: neither here nor, for targets in [0, 1], in the gradients.
Tensor forward(const Tensor& x, const Tensor& z, const Tensor& w) {
  auto loss = [](auto x, auto z, auto w) { return w * z * softplus(-x) + (1 - z) * softplus(x); };
  return map(kOp, loss, x, z, w);
}

/// dx = dy ((1 - z) sigmoid(x) - w z sigmoid(-x)), dz = dy (w softplus(-x) - softplus(x))
std::vector<Tensor> backward(const Tensor& dy, const Tensor& x, const Tensor& z, const Tensor& w, const Needs& needs) {
  auto vjp_x = [](auto dy, auto x, auto z, auto w) { return dy * ((1 - z) * sigmoid(x) - w * z * sigmoid(-x)); };
  auto vjp_z = [](auto dy, auto x, auto w) { return dy * (w * softplus(-x) - softplus(x)); };
  return {needs[0] ? map(kOp, vjp_x, dy, x, z, w) : Tensor(), needs[1] ? map(kOp, vjp_z, dy, x, w) : Tensor()};
}

Var composed(const Var& x, const Var& z, const Tensor& w) {
  return w * z * braid::softplus(-x) + (1 - z) * braid::softplus(x);
}

}  // namespace

Var binary_cross_entropy_with_logits(const Var& logits, const Var& targets, Reduction reduction,
                                     const Tensor& positive_weight) {
  if (logits.dtype() == DType::bf16)
    return binary_cross_entropy_with_logits(
        detail::widened(logits), detail::widened(targets), reduction,
        positive_weight.defined() ? positive_weight.to(compute_dtype(positive_weight.dtype())) : Tensor());
  check_floating(kOp, logits.dtype());
  check_same_dtype(kOp, logits.value(), targets.value());
  check_shape(targets.shape() == logits.shape(), "{}: targets must have shape {} to match logits but have {}", kOp,
              logits.shape(), targets.shape());
  const Tensor w = positive_weight.defined() ? positive_weight : ones({}, logits.dtype());
  check_same_dtype(kOp, logits.value(), w);
  check_shape(broadcast_shapes(kOp, logits.shape(), w.shape()) == logits.shape(),
              "{}: positive_weight {} must broadcast to logits {}", kOp, w.shape(), logits.shape());
  if (Composed::active()) return detail::reduce_losses(composed(logits, targets, w), reduction);
  const Tensor x = logits.value(), z = targets.value();
  const Var losses = record("binary_cross_entropy_with_logits", forward(x, z, w), {logits, targets},
                            [x, z, w](const Tensor& dy, const Needs& needs) { return backward(dy, x, z, w, needs); });
  return detail::reduce_losses(losses, reduction);
}

}  // namespace braid

#include <braid/autograd/ops/binary_cross_entropy.h>

#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/autograd/ops/detail/reduce_losses.h>
#include <braid/autograd/ops/softplus.h>

namespace braid {
namespace {

constexpr const char* kOp = "binary_cross_entropy_with_logits";

/// The cotangents of x and z.
std::vector<Tensor> backward(const Tensor& dy, const Tensor& x, const Tensor& z, const Tensor& w, const Needs& needs) {
  auto vjp_x = [](const auto& of) { return of.binary_cross_entropy_vjp; };
  auto vjp_z = [](const auto& of) { return of.binary_cross_entropy_vjp_z; };
  return {needs[0] ? detail::map_kernel(kOp, vjp_x, dy, x, z, w) : Tensor(),
          needs[1] ? detail::map_kernel(kOp, vjp_z, dy, x, w) : Tensor()};
}

Var composed(const Var& x, const Var& z, const Tensor& w) { return w * z * softplus(-x) + (1 - z) * softplus(x); }

}  // namespace

Var binary_cross_entropy_with_logits(const Var& logits, const Var& targets, Reduction reduction,
                                     const Tensor& positive_weight) {
  if (logits.dtype() == DType::bf16)
    return binary_cross_entropy_with_logits(detail::widened(logits), detail::widened(targets), reduction,
                                            detail::widened(positive_weight));
  check_same_dtype(kOp, logits.value(), targets.value());
  check_shape(targets.shape() == logits.shape(), "{}: targets must have shape {} to match logits but have {}", kOp,
              logits.shape(), targets.shape());
  const Tensor w = positive_weight.defined() ? positive_weight : ones({}, logits.dtype());
  check_same_dtype(kOp, logits.value(), w);
  check_shape(broadcast_shapes(kOp, logits.shape(), w.shape()) == logits.shape(),
              "{}: positive_weight {} must broadcast to logits {}", kOp, w.shape(), logits.shape());
  if (Composed::active()) return detail::reduce_losses(composed(logits, targets, w), reduction);
  const Tensor x = logits.value(), z = targets.value();
  auto forward = [](const auto& of) { return of.binary_cross_entropy; };
  const Var losses =
      record("binary_cross_entropy_with_logits", detail::map_kernel(kOp, forward, x, z, w), {logits, targets},
             [x, z, w](const Tensor& dy, const Needs& needs) { return backward(dy, x, z, w, needs); });
  return detail::reduce_losses(losses, reduction);
}

}  // namespace braid

#include <braid/autograd/ops/kl_divergence.h>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/autograd/ops/detail/reduce_losses.h>

namespace braid {
namespace {

/// dlog_q = -dy p, dp = dy (log(p) + 1 - log_q)
std::vector<Tensor> backward(const Tensor& dy, const Tensor& log_q, const Tensor& p, const Needs& needs) {
  auto vjp_q = [](auto dy, auto p) { return -dy * p; };
  auto vjp_p = [](const auto& of) { return of.kl_divergence_vjp_p; };
  return {needs[0] ? map("kl_divergence", vjp_q, dy, p) : Tensor(),
          needs[1] ? detail::map_kernel("kl_divergence", vjp_p, dy, log_q, p) : Tensor()};
}

Var fused(const Var& log_q, const Var& p) {
  auto forward = [](const auto& of) { return of.kl_divergence; };
  return record("kl_divergence", detail::map_kernel("kl_divergence", forward, log_q.value(), p.value()), {log_q, p},
                [log_q = log_q.value(), p = p.value()](const Tensor& dy, const Needs& needs) {
                  return backward(dy, log_q, p, needs);
                });
}

/// At p = 0 the loss is -sqrt(p), which has the value and the slope of p log(p) there: 0 and -infinity.
Var composed(const Var& log_q, const Var& p) {
  const Tensor& positive = p.value();
  const Var inside = where(positive, p, 1.0), log_q_inside = where(positive, log_q, 0.0);
  return where(positive, inside * (log(inside) - log_q_inside), -sqrt(p));
}

}  // namespace

Var kl_divergence(const Var& log_probabilities, const Var& targets, Reduction reduction) {
  if (log_probabilities.dtype() == DType::bf16)
    return kl_divergence(detail::widened(log_probabilities), detail::widened(targets), reduction);
  check_floating("kl_divergence", log_probabilities.dtype());
  check_same_dtype("kl_divergence", log_probabilities.value(), targets.value());
  check_shape(targets.shape() == log_probabilities.shape(),
              "kl_divergence: targets must have shape {} to match log_probabilities but have {}",
              log_probabilities.shape(), targets.shape());
  return detail::reduce_losses((Composed::active() ? composed : fused)(log_probabilities, targets), reduction);
}

}  // namespace braid

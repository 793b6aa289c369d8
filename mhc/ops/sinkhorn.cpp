#include <braid/mhc/ops/sinkhorn.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/exp.h>
#include <braid/autograd/ops/logsumexp.h>
#include <braid/mhc/detail/arguments.h>
#include <braid/mhc/kernels/sinkhorn.h>

namespace braid::mhc {
namespace {

void check_arguments(const Var& logits, int iterations) {
  const Shape& shape = logits.shape();
  check_shape(shape.rank() >= 2 && shape[-1] == shape[-2] && shape[-1] >= 1,
              "sinkhorn_knopp: logits must have shape [..., n, n] with n >= 1 but has {}", shape);
  check_value(iterations >= 1, "sinkhorn_knopp: iterations must be >= 1 but is {}", iterations);
}

kernels::SinkhornProblem problem_of(const Shape& shape, int iterations, Marginal exact) {
  const std::int64_t n = shape[-1];
  return {shape.numel() / (n * n), static_cast<int>(n), iterations, exact == Marginal::rows};
}

Tensor forward(const Tensor& logits, int iterations, Marginal exact) {
  const Tensor z = logits.contiguous();
  Tensor p = detail::like(z);
  kernels::sinkhorn_kernels().dispatch("sinkhorn_knopp", z.dtype(), [&](const auto& kernel) {
    kernel.forward(problem_of(z.shape(), iterations, exact), detail::In{z}, detail::Out{p});
  });
  return p;
}

Tensor backward(const Tensor& cotangent, const Tensor& logits, int iterations, Marginal exact) {
  const Tensor z = logits.contiguous(), dy = cotangent.contiguous();
  Tensor dz = detail::like(z);
  kernels::sinkhorn_kernels().dispatch("sinkhorn_knopp", z.dtype(), [&](const auto& kernel) {
    kernel.vjp(problem_of(z.shape(), iterations, exact), detail::In{z}, detail::In{dy}, detail::Out{dz});
  });
  return dz;
}

Var composed(const Var& logits, int iterations, Marginal exact) {
  const int first = exact == Marginal::columns ? -1 : -2;
  Var log_p = logits;
  for (int k = 0; k < iterations; ++k)
    for (const int axis : {first, -3 - first}) log_p = log_p - logsumexp(log_p, {axis}, true);
  return exp(log_p);
}

}  // namespace

Var sinkhorn_knopp(const Var& logits, int iterations, Marginal exact, Path path) {
  check_arguments(logits, iterations);
  if (path == Path::reference) return composed(logits, iterations, exact);
  return record(
      "sinkhorn_knopp", forward(logits.value(), iterations, exact), {logits},
      [z = logits.value(), iterations, exact](const Tensor& dy) { return backward(dy, z, iterations, exact); });
}

}  // namespace braid::mhc

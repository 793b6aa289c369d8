#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/sinkhorn.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/sinkhorn-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

braid::kernels::Tables<Kernels> tables() { return tables_of<Sinkhorn>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {
namespace {

HWY_EXPORT(tables);

/// The axis that is normalized first, and the other.
Var composed(const Var& logits, const Problem& p) {
  const auto& [iterations, exact, eps, gamma, block] = p.settings;
  const int first = exact == Marginal::columns ? -1 : -2, second = -3 - first;
  if (eps != 0) {
    Var y = softmax(square(logits, p.n), first) + eps;
    y = y / (sum(y, {second}, true) + eps);
    for (int k = 1; k < iterations; ++k)
      for (const int axis : {first, second}) y = y / (sum(y, {axis}, true) + eps);
    return y;
  }
  Var log_p = square(logits, p.n);
  for (int k = 0; k < iterations; ++k)
    for (const int axis : {first, second}) log_p = log_softmax(log_p, axis);
  return exp(log_p);
}

}  // namespace

/// Sinkhorn-Knopp, arXiv:2512.24880: exp(l), rows and columns normalized in turn. See ops/sinkhorn.h.
extern constinit const Family sinkhorn = {
    .name = "sinkhorn",
    .traits =
        [](const MixingSettings& s) {
          return MixingTraits{.rows = s.exact == Marginal::rows && s.eps == 0,
                              .columns = s.exact == Marginal::columns && s.eps == 0};
        },
    .logits = [](std::int64_t n, const MixingSettings&) { return n * n; },
    .identity = diagonal_logit,
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

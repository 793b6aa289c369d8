#include <algorithm>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/sinkhorn.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>
#include <braid/mhc/mixings/sinkhorn-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

/// Works in place, on copies.
template <class D, int kN>
class Sinkhorn : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::lanes, Base::n;
  using typename Base::T;

 public:
  explicit Sinkhorn(const Problem& p) : Base(p), solver_(this->d_, p.n, p.settings) {}

  std::int64_t workspace() const {
    return size() / lanes() + solver_.workspace_vectors(n(), this->problem_.settings.iterations);
  }

  void forward(const T* logits, T* h, T*) const {
    std::copy_n(logits, size(), h);
    solver_.forward(h);
  }

  void vjp(const T* logits, const T*, const T* dh, T* dlogits, T* workspace) const {
    std::copy_n(logits, size(), workspace);
    std::copy_n(dh, size(), dlogits);
    solver_.backward(workspace, dlogits, workspace + size());
  }

 private:
  std::int64_t size() const { return n() * n() * lanes(); }

  SinkhornLanes<D, kN> solver_;
};

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
    for (const int axis : {first, second}) log_p = log_p - logsumexp(log_p, {axis}, true);
  return exp(log_p);
}

}  // namespace

/// Sinkhorn-Knopp, arXiv:2512.24880: exp(l), rows and columns normalized in turn. See ops/sinkhorn.h.
extern const Family sinkhorn;
constinit const Family sinkhorn = {
    .name = "sinkhorn",
    .traits =
        [](const MixingSettings& s) {
          return MixingTraits{.rows = s.exact == Marginal::rows && s.eps == 0,
                              .columns = s.exact == Marginal::columns && s.eps == 0};
        },
    .logits = [](std::int64_t n, const MixingSettings&) { return n * n; },
    .identity = [](const Problem& p) { return diagonal_logits(p.n, 4); },
    .composed = composed,
    .kernels = [] { return HWY_DYNAMIC_DISPATCH(tables)(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

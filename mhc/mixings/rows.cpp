#include <braid/autograd/ops/softmax.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/rows.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

template <class D, int kN>
class Rows : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::n, Base::softmax, Base::softmax_vjp;
  using typename Base::T;

 public:
  using Base::Base;

  void forward(const T* logits, T* h, T*) const {
    for (std::int64_t i = 0; i < n(); ++i) softmax(logits, i * n(), n(), h);
  }

  void vjp(const T*, const T* h, const T* dh, T* dlogits, T*) const {
    for (std::int64_t i = 0; i < n(); ++i) softmax_vjp(h, dh, i * n(), n(), dlogits);
  }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Rows>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

/// Rows that sum to 1, by softmax: `h_ij = exp(l_ij) / sum_k exp(l_ik)`. One marginal alone bounds the spectral norm of
/// any product by sqrt(n) (OpenReview 1BC0eYN2uS).
extern constinit const Family rows = {
    .name = "rows",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true}; },
    .logits = [](std::int64_t n, const MixingSettings&) { return n * n; },
    .identity = diagonal_logit,
    .composed = [](const Var& l, const Mixing& m) { return softmax(square(l, m.n())); },
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

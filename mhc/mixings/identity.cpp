#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/identity.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

template <class D, int kN>
class Identity : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::n, Base::set, Base::store;
  using typename Base::T;

 public:
  using Base::Base;

  void forward(const T*, T* h, T*) const {
    for (std::int64_t i = 0; i < n(); ++i)
      for (std::int64_t j = 0; j < n(); ++j) store(h, i * n() + j, set(i == j ? 1 : 0));
  }

  void vjp(const T*, const T*, const T*, T*, T*) const {}
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Identity>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

/// No mixing: `H = I`, without logits ("iHC", arXiv:2607.28611). Streams differ only by what is read and written.
extern constinit const Family identity = {
    .name = "identity",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true, .columns = true, .orthogonal = true}; },
    .logits = [](std::int64_t, const MixingSettings&) { return std::int64_t{0}; },
    .composed = [](const Var& logits, const Mixing& m) -> Var { return eye(m.n(), logits.dtype()); },
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/diagonal.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

template <class D, int kN>
class Diagonal : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::load, Base::n, Base::poison, Base::set, Base::store;
  using typename Base::T, typename Base::V;

 public:
  using Base::Base;

  void forward(const T* logits, T* h, T*) const {
    for (std::int64_t e = 0; e < n() * n(); ++e) store(h, e, set(0));
    for (std::int64_t i = 0; i < n(); ++i) {
      const V l = load(logits, i);
      store(h, i * (n() + 1), hn::Add(braid::kernels::HWY_NAMESPACE::sigmoid(this->d_, l), poison(l)));
    }
  }

  /// dl_i = h_ii (1 - h_ii) dh_ii
  void vjp(const T*, const T* h, const T* dh, T* dlogits, T*) const {
    for (std::int64_t i = 0; i < n(); ++i) {
      const V y = load(h, i * (n() + 1));
      store(dlogits, i, hn::Mul(hn::NegMulAdd(y, y, y), load(dh, i * (n() + 1))));
    }
  }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Diagonal>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

/// Streams that are kept or forgotten but not mixed, as Hyperloop does (arXiv:2604.21254): `H = diag(sigmoid(l))`.
/// Nothing is kept exactly: every norm shrinks. Starts 3.4e-4 from the identity.
extern constinit const Family diagonal = {
    .name = "diagonal",
    .traits = [](const MixingSettings&) { return MixingTraits{}; },
    .logits = [](std::int64_t n, const MixingSettings&) { return n; },
    .identity = [](std::int64_t, std::int64_t) { return 8.0; },
    .composed = [](const Var& l, const Mixing& m) { return expand_dims(sigmoid(l), -1) * eye(m.n(), l.dtype()); },
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

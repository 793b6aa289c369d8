#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/circulant.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

template <class D, int kN>
class Circulant : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::load, Base::n, Base::set, Base::softmax, Base::softmax_vjp, Base::store;
  using typename Base::T, typename Base::V;

 public:
  using Base::Base;

  std::int64_t workspace() const { return 2 * n(); }

  void forward(const T* logits, T* h, T* workspace) const {
    softmax(logits, 0, n(), workspace);
    for (std::int64_t k = 0; k < n(); ++k) {
      const V c = hn::MulAdd(set(gamma()), load(workspace, k), set(k == 0 ? 1 - gamma() : 0));
      for (std::int64_t i = 0; i < n(); ++i) store(h, entry(i, k), c);
    }
  }

  /// dc_k = sum_i dh_i,i+k
  void vjp(const T* logits, const T*, const T* dh, T* dlogits, T* workspace) const {
    T *y = workspace, *dy = workspace + n() * this->lanes();
    for (std::int64_t k = 0; k < n(); ++k) {
      V dc = set(0);
      for (std::int64_t i = 0; i < n(); ++i) dc = hn::Add(dc, load(dh, entry(i, k)));
      store(dy, k, hn::Mul(set(gamma()), dc));
    }
    softmax(logits, 0, n(), y);
    softmax_vjp(y, dy, 0, n(), dlogits);
  }

 private:
  double gamma() const { return this->mixing_.settings().gamma; }
  std::int64_t entry(std::int64_t i, std::int64_t k) const { return i * n() + (i + k < n() ? i + k : i + k - n()); }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Circulant>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

static Var composed(const Var& logits, const Mixing& m) {
  std::vector<std::int32_t> order;
  for (std::int64_t i = 0; i < m.n(); ++i)
    for (std::int64_t j = 0; j < m.n(); ++j) order.push_back(static_cast<std::int32_t>((j - i + m.n()) % m.n()));
  const Tensor ids = Tensor::of<std::int32_t>({m.n() * m.n()}, order);
  const double gamma = m.settings().gamma;
  const Var c = gamma * softmax(logits) + (1 - gamma) * select(eye(m.n(), logits.dtype()), 0, 0);
  return square(index_select(c, -1, ids), m.n());
}

/// Mixtures of cyclic shifts (github.com/contactsebi/circulant-hyper-connections): `H_ij = c_(j - i) mod n`,
/// `c = (1 - gamma) e_0 + gamma softmax(l)`. Doubly stochastic to rounding; all commute, the discrete Fourier transform
/// of c is the spectrum, and that of a product is the product of theirs. Starts `gamma (n - 1) / (e^4 + n - 1)` from
/// the identity: .052 at n = 4, gamma = 1.
extern constinit const Family circulant = {
    .name = "circulant",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true, .columns = true}; },
    .logits = [](std::int64_t n, const MixingSettings&) { return n; },
    .identity = [](std::int64_t, std::int64_t k) { return k == 0 ? 4.0 : 0.0; },
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

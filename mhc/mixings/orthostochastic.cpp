#include <braid/autograd/ops.h>
#include <braid/core/random.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/orthostochastic.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/cayley-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

/// With s = 2 the loops are unrolled at n = 4, which takes half the time.
template <class D, int kN>
class Orthostochastic : public CayleyLanes<D, kN, 2 * kN> {
  using Base = CayleyLanes<D, kN, 2 * kN>;
  using Base::lanes, Base::load, Base::n, Base::rotation, Base::rotation_vjp, Base::set, Base::size, Base::store;
  using typename Base::T, typename Base::V;

 public:
  explicit Orthostochastic(const Mixing& m) : Base(m, m.n() * m.settings().block) {}

  static bool unrolls(const Mixing& m) { return m.n() == 4 && m.settings().block == 2; }
  std::int64_t workspace() const { return 3 * size() * size(); }

  void forward(const T* logits, T* h, T* workspace) const {
    rotation(logits, workspace, workspace + size() * size() * lanes());
    for (std::int64_t i = 0; i < n(); ++i)
      for (std::int64_t j = 0; j < n(); ++j) {
        V sum = set(0);
        for (std::int64_t a = i * block(); a < (i + 1) * block(); ++a)
          for (std::int64_t b = j * block(); b < (j + 1) * block(); ++b) {
            const V q = load(workspace, a * size() + b);
            sum = hn::MulAdd(q, q, sum);
          }
        store(h, i * n() + j, hn::Mul(set(1 / static_cast<double>(block())), sum));
      }
  }

  /// dQ = 2 / s times dH of its block times Q
  void vjp(const T* logits, const T*, const T* dh, T* dlogits, T* workspace) const {
    T *q = workspace, *dq = q + size() * size() * lanes(), *product = dq + size() * size() * lanes();
    rotation(logits, q, product);
    for (std::int64_t i = 0; i < n(); ++i)
      for (std::int64_t j = 0; j < n(); ++j) {
        const V scaled = hn::Mul(set(2 / static_cast<double>(block())), load(dh, i * n() + j));
        for (std::int64_t a = i * block(); a < (i + 1) * block(); ++a)
          for (std::int64_t b = j * block(); b < (j + 1) * block(); ++b)
            store(dq, a * size() + b, hn::Mul(scaled, load(q, a * size() + b)));
      }
    rotation_vjp(q, dq, dlogits, q, product);
  }

 private:
  std::int64_t block() const { return kN != 0 ? 2 : this->mixing_.settings().block; }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Orthostochastic>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {
namespace {

HWY_EXPORT(tables);

Var composed(const Var& logits, const Mixing& m) {
  const std::int64_t s = m.settings().block;
  const Var q = cayley_rotation(logits, m.n() * s);
  return sum(reshape(q * q, logits.shape().without(-1).concat({m.n(), s, m.n(), s})), {-3, -1}) /
         static_cast<double>(s);
}

/// Uniform in (-.1, .1).
std::vector<double> start(const Mixing& m) {
  Rng rng(0);
  std::vector<double> logits(static_cast<std::size_t>(m.logits()));
  for (double& l : logits) l = 0.1 * (2 * rng.uniform() - 1);
  return logits;
}

}  // namespace

/// go-mHC, arXiv:2604.02309: `H_ij = 1/s sum of the squares of the s x s block (i, j) of Q`, the Cayley rotation of
/// size n s. Doubly stochastic to rounding. At the published start, logits 0, H is the identity and every gradient
/// exactly 0: the squares of the entries off the diagonal of Q have slope 0 there, and the diagonal is at its maximum.
/// braid therefore starts at random logits, .10 from the identity at n = 4 and s = 2.
extern constinit const Family orthostochastic = {
    .name = "orthostochastic",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true, .columns = true}; },
    .logits = [](std::int64_t n, const MixingSettings& s) { return n * s.block * (n * s.block - 1) / 2; },
    .start = start,
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

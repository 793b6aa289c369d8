#include <cmath>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/isometric.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/cayley-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

/// Vectors x, x + step, ..
template <class T>
struct Line {
  T* first;
  std::int64_t step;  // in vectors
};

/// U [n, n - 1], the Helmert basis of what is orthogonal to (1, .., 1): u_ik is c_k = 1 / sqrt(k (k + 1)) for i < k,
/// -k c_k for i = k, and 0 below. With E = [1/sqrt(n) | U], E E^T = I, H = 2 (U P U^T + 1/n) - I.
template <class D, int kN>
class Isometric : public CayleyLanes<D, kN, kN == 0 ? 0 : kN - 1> {
  using Base = CayleyLanes<D, kN, kN == 0 ? 0 : kN - 1>;
  using Base::inverse, Base::lanes, Base::load, Base::n, Base::rotation_vjp, Base::set, Base::size, Base::store;
  using typename Base::T, typename Base::V;

 public:
  explicit Isometric(const Mixing& m) : Base(m, m.n() - 1) {}

  std::int64_t workspace() const { return 3 * n() * n(); }

  void forward(const T* logits, T* h, T* workspace) const {
    T *p = workspace, *up = vector(workspace, n() * n());
    inverse(logits, p, up);
    for (std::int64_t k = 0; k < size(); ++k) raise({vector(p, k), size()}, {vector(up, k), size()});
    for (std::int64_t i = 0; i < n(); ++i) raise({vector(up, i * size()), 1}, {vector(h, i * n()), 1});
    const double mean = 2.0 / static_cast<double>(n());
    for (std::int64_t i = 0; i < n(); ++i)
      for (std::int64_t j = 0; j < n(); ++j) {
        const std::int64_t e = i * n() + j;
        store(h, e, hn::MulAdd(set(2), load(h, e), set(i == j ? mean - 1 : mean)));
      }
  }

  void vjp(const T*, const T* h, const T* dh, T* dlogits, T* workspace) const {
    T *r = workspace, *dq = vector(r, n() * n()), *product = vector(dq, n() * n());
    project(h, r, product);
    project(dh, dq, product);
    rotation_vjp(r, dq, dlogits, r, product);
  }

 private:
  static auto* vector(auto* x, std::int64_t k) { return x + k * lanes(); }

  double coefficient(std::int64_t k) const { return 1 / std::sqrt(static_cast<double>(k * (k + 1))); }

  /// y [n] = U x [n - 1]
  HWY_INLINE void raise(Line<const T> x, Line<T> y) const {
    V sum = set(0);
    for (std::int64_t k = size(); k > 0; --k) {
      const V v = hn::Mul(set(coefficient(k)), load(x.first, (k - 1) * x.step));
      store(y.first, k * y.step, hn::NegMulAdd(set(static_cast<double>(k)), v, sum));
      sum = hn::Add(sum, v);
    }
    store(y.first, 0, sum);
  }

  /// y [n - 1] = U^T x [n]
  HWY_INLINE void lower(Line<const T> x, Line<T> y) const {
    V sum = load(x.first, 0);
    for (std::int64_t k = 1; k <= size(); ++k) {
      const V v = load(x.first, k * x.step);
      const V difference = hn::NegMulAdd(set(static_cast<double>(k)), v, sum);
      store(y.first, (k - 1) * y.step, hn::Mul(set(coefficient(k)), difference));
      sum = hn::Add(sum, v);
    }
  }

  /// y [n - 1, n - 1] = U^T x [n, n] U
  void project(const T* x, T* y, T* scratch) const {
    for (std::int64_t j = 0; j < n(); ++j) lower({vector(x, j), n()}, {vector(scratch, j), n()});
    for (std::int64_t k = 0; k < size(); ++k) lower({vector(scratch, k * n()), 1}, {vector(y, k * size()), 1});
  }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Isometric>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

static Var composed(const Var& logits, const Mixing& m) {
  Tensor basis = zeros({m.n(), m.n() - 1}, DType::f64);
  double* u = basis.mutable_data<double>();
  for (std::int64_t k = 1; k < m.n(); ++k) {
    const auto of = static_cast<double>(k);
    for (std::int64_t i = 0; i <= k; ++i) u[i * (m.n() - 1) + k - 1] = (i < k ? 1 : -of) / std::sqrt(of * (of + 1));
  }
  const Var helmert = basis.to(logits.dtype());
  const Var rotated = matmul(matmul(helmert, cayley_rotation(logits, m.n() - 1)), transpose(helmert));
  return rotated + 1 / static_cast<double>(m.n());
}

/// Rotations that keep the mean of the streams (IsoHC, named in arXiv:2609.02672): `H = E diag(1, Q) E^T`, where the
/// first column of E is 1/sqrt(n), the others are Helmert's basis of the differences, and Q is the Cayley rotation of
/// size n - 1. Orthogonal, rows and columns sum to 1, all to rounding; entries may be negative. Starts at the identity.
extern constinit const Family isometric = {
    .name = "isometric",
    .traits =
        [](const MixingSettings&) {
          return MixingTraits{.rows = true, .columns = true, .orthogonal = true, .negative = true};
        },
    .logits = [](std::int64_t n, const MixingSettings&) { return (n - 1) * (n - 2) / 2; },
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

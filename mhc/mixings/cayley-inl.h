// Cayley's map of skew matrices to rotations, for the mixings made of it. Included once per SIMD target.

#if defined(BRAID_MHC_MIXINGS_CAYLEY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_MIXINGS_CAYLEY_INL_H_
#undef BRAID_MHC_MIXINGS_CAYLEY_INL_H_
#else
#define BRAID_MHC_MIXINGS_CAYLEY_INL_H_
#endif

#include <cstdint>

#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {

/// `Q = (I - A)(I + A)^-1 = 2 P - I` with `P = (I + A)^-1`, for skew A [size, size] whose entries above the diagonal
/// are the logits, row by row. kSize is the size, or 0 when it is known at run time only.
template <class D, int kN, int kSize>
class CayleyLanes : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;

 protected:
  using Base::lanes, Base::load, Base::poison, Base::set, Base::store;
  using typename Base::T, typename Base::V;

  CayleyLanes(const Mixing& mixing, std::int64_t size) : Base(mixing), size_(size) {}

  std::int64_t size() const { return kSize != 0 ? kSize : size_; }

  /// P, grown by one row and column after the other: with a the new column of A above the diagonal, u = P a,
  /// w^T = a^T P and r = 1 / (1 + <a, u>), what follows P is
  ///
  ///     [ P - r u w^T   -r u ]
  ///     [     r w^T       r  ]
  ///
  /// As a^T P a = |P^T a|^2, nothing is ever divided by less than 1 and no pivots are sought.
  void inverse(const T* logits, T* p, T* column) const {
    const std::int64_t m = size();
    for (std::int64_t k = 0; k < m; ++k) {
      for (std::int64_t i = 0; i < k; ++i) store(column, i, bounded(load(logits, above_diagonal(i, k))));
      V pivot = set(1);
      for (std::int64_t i = 0; i < k; ++i) {
        V u = set(0), w = set(0);
        for (std::int64_t j = 0; j < k; ++j) {
          u = hn::MulAdd(load(p, i * m + j), load(column, j), u);
          w = hn::MulAdd(load(p, j * m + i), load(column, j), w);
        }
        store(p, i * m + k, u);
        store(p, k * m + i, w);
        pivot = hn::MulAdd(w, load(column, i), pivot);
      }
      border(p, k, hn::Div(set(1), hn::Max(pivot, set(1))));
    }
  }

  /// Q
  void rotation(const T* logits, T* q, T* column) const {
    inverse(logits, q, column);
    scale_and_shift(q, 2, -1, q);
  }

  /// With R = I + Q = 2 P, dA = -R^T dQ R^T / 2, and a logit has dA_ij - dA_ji. r may be q.
  void rotation_vjp(const T* q, const T* dq, T* dlogits, T* r, T* product) const {
    const std::int64_t m = size();
    scale_and_shift(q, 1, 1, r);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < m; ++j) {
        V sum = set(0);
        for (std::int64_t k = 0; k < m; ++k) sum = hn::MulAdd(load(r, k * m + i), load(dq, k * m + j), sum);
        store(product, i * m + j, sum);
      }
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = i + 1; j < m; ++j) {
        V sum = set(0);
        for (std::int64_t k = 0; k < m; ++k) {
          sum = hn::MulAdd(load(product, j * m + k), load(r, i * m + k), sum);
          sum = hn::NegMulAdd(load(product, i * m + k), load(r, j * m + k), sum);
        }
        store(dlogits, above_diagonal(i, j), hn::Mul(set(0.5), sum));
      }
  }

 private:
  /// to = factor from + shift I; may be in place.
  void scale_and_shift(const T* from, double factor, double shift, T* to) const {
    for (std::int64_t i = 0; i < size(); ++i)
      for (std::int64_t j = 0; j < size(); ++j) {
        const std::int64_t e = i * size() + j;
        store(to, e, hn::MulAdd(set(factor), load(from, e), set(i == j ? shift : 0)));
      }
  }

  std::int64_t above_diagonal(std::int64_t i, std::int64_t j) const { return i * (2 * size() - i - 1) / 2 + j - i - 1; }

  /// Logits count up to a bound, beyond which products of them would swallow the 1 in I + A, and at last overflow.
  HWY_INLINE V bounded(V l) const {
    constexpr T kBound = static_cast<T>(sizeof(T) == 4 ? 0x1p10 : 0x1p24);
    return hn::Add(braid::kernels::HWY_NAMESPACE::clamp(this->d_, l, -kBound, kBound), poison(l));
  }

  /// One step of inverse() where u and w stand already in the new column and row.
  HWY_INLINE void border(T* p, std::int64_t k, V inverse_pivot) const {
    const std::int64_t m = size();
    for (std::int64_t i = 0; i < k; ++i) {
      const V u = hn::Mul(load(p, i * m + k), inverse_pivot);
      for (std::int64_t j = 0; j < k; ++j)
        store(p, i * m + j, hn::NegMulAdd(u, load(p, k * m + j), load(p, i * m + j)));
      store(p, i * m + k, hn::Neg(u));
    }
    for (std::int64_t j = 0; j < k; ++j) store(p, k * m + j, hn::Mul(load(p, k * m + j), inverse_pivot));
    store(p, k * m + k, inverse_pivot);
  }

  std::int64_t size_;
};

}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

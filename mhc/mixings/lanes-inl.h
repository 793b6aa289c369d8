// The base of the kernels of all mixings: logits and matrices of tokens, one per lane. Included once per SIMD target.

#if defined(BRAID_MHC_MIXINGS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_MIXINGS_LANES_INL_H_
#undef BRAID_MHC_MIXINGS_LANES_INL_H_
#else
#define BRAID_MHC_MIXINGS_LANES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>
#include <braid/core/kernels/transpose-inl.h>
#include <braid/core/kernels/vector-inl.h>
#include <braid/mhc/mixings/detail/family.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using braid::kernels::HWY_NAMESPACE::kSquare;

/// A mixing derives from it and adds forward(logits, h, workspace), vjp(logits, h, dh, dlogits, workspace) and
/// workspace(). kN is n, or 0 when it is known at run time only.
template <class D, int kN>
class Lanes {
 public:
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;

  explicit Lanes(const Mixing& mixing) : mixing_(mixing) {}

  /// Whether the form with kN = 4 is the one for this mixing.
  static bool unrolls(const Mixing& mixing) { return mixing.n() == 4; }
  /// The number of vectors of workspace that it needs.
  std::int64_t workspace() const { return 0; }

 protected:
  std::int64_t n() const { return kN != 0 ? kN : mixing_.n(); }
  HWY_INLINE V load(const T* p, std::int64_t entry) const { return hn::Load(d_, p + entry * lanes()); }
  HWY_INLINE void store(T* p, std::int64_t entry, V v) const { hn::Store(v, d_, p + entry * lanes()); }
  HWY_INLINE V set(double value) const { return hn::Set(d_, static_cast<T>(value)); }
  static std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }
  /// 0, but NaN for NaN and infinities.
  static HWY_INLINE V poison(V v) { return hn::Sub(v, v); }

  /// 0, but NaN where one of logits x [n n] is NaN or infinite: -inf would be an ordinary logit, weight 0.
  V nan_unless_finite(const T* x) const {
    V sum = hn::Zero(d_);
    for (std::int64_t e = 0; e < n() * n(); ++e) sum = hn::Add(sum, poison(load(x, e)));
    return sum;
  }

  /// y <- softmax(l) over `count` entries from `first` on; NaN when one is NaN or infinite.
  HWY_INLINE void softmax(const T* l, std::int64_t first, std::int64_t count, T* y) const {
    V top = load(l, first), sum = hn::Zero(d_);
    for (std::int64_t k = 1; k < count; ++k) top = hn::Max(top, load(l, first + k));
    for (std::int64_t k = 0; k < count; ++k) {
      const V v = load(l, first + k), e = braid::kernels::HWY_NAMESPACE::exp_to_one(d_, hn::Sub(v, top));
      sum = hn::Add(sum, hn::Add(e, poison(v)));
      store(y, first + k, e);
    }
    const V inverse = hn::Div(set(1), sum);
    for (std::int64_t k = 0; k < count; ++k) store(y, first + k, hn::Mul(load(y, first + k), inverse));
  }

  /// dl = y (dy - <y, dy>)
  HWY_INLINE void softmax_vjp(const T* y, const T* dy, std::int64_t first, std::int64_t count, T* dl) const {
    V sum = hn::Zero(d_);
    for (std::int64_t k = 0; k < count; ++k) sum = hn::MulAdd(load(y, first + k), load(dy, first + k), sum);
    for (std::int64_t k = 0; k < count; ++k)
      store(dl, first + k, hn::Mul(load(y, first + k), hn::Sub(load(dy, first + k), sum)));
  }

  const D d_{};
  const Mixing& mixing_;
};

/// Rows of `entries`, from and to one row per lane. Lanes past the last row are zero.
template <class T>
class LanePacking {
 public:
  explicit LanePacking(std::int64_t entries) : entries_(entries) {}

  static std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())); }
  std::int64_t size() const { return entries_ * lanes(); }

  void pack(const T* rows, std::int64_t count, T* vectors) const {
    if (in_squares(count)) return transpose(lanes(), entries_, rows, vectors);
    if (count < lanes()) std::fill_n(vectors, size(), T{0});
    for (std::int64_t b = 0; b < std::min(count, lanes()); ++b)
      for (std::int64_t e = 0; e < entries_; ++e) vectors[e * lanes() + b] = rows[b * entries_ + e];
  }

  void unpack(const T* vectors, std::int64_t count, T* rows) const {
    if (in_squares(count)) return transpose(entries_, lanes(), vectors, rows);
    for (std::int64_t b = 0; b < std::min(count, lanes()); ++b)
      for (std::int64_t e = 0; e < entries_; ++e) rows[b * entries_ + e] = vectors[e * lanes() + b];
  }

 private:
  bool in_squares(std::int64_t count) const { return count >= lanes() && entries_ % kSquare<T> == 0; }

  /// [n, m] -> [m, n]
  static void transpose(std::int64_t n, std::int64_t m, const T* from, T* to) {
    for (std::int64_t i = 0; i < n; i += kSquare<T>)
      for (std::int64_t j = 0; j < m; j += kSquare<T>)
        braid::kernels::HWY_NAMESPACE::transpose_square(from + i * m + j, m, to + j * n + i, n);
  }

  std::int64_t entries_;
};

/// The kernels of a mixing, with loops unrolled for n = 4.
template <template <class, int> class M, class T>
constexpr Kernels<T> kernels_of() {
  using D = hn::ScalableTag<T>;
  return {
      .forward =
          [](const Mixing& m, const T* logits, T* h, T* workspace) {
            M<D, 4>::unrolls(m) ? M<D, 4>(m).forward(logits, h, workspace) : M<D, 0>(m).forward(logits, h, workspace);
          },
      .vjp =
          [](const Mixing& m, const T* logits, const T* h, const T* dh, T* dlogits, T* workspace) {
            M<D, 4>::unrolls(m) ? M<D, 4>(m).vjp(logits, h, dh, dlogits, workspace)
                                : M<D, 0>(m).vjp(logits, h, dh, dlogits, workspace);
          },
      .workspace = [](const Mixing& m) { return M<D, 0>(m).workspace(); },
  };
}

template <template <class, int> class M>
constexpr braid::kernels::Tables<Kernels> tables_of() {
  return {kernels_of<M, float>(), kernels_of<M, double>()};
}

}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

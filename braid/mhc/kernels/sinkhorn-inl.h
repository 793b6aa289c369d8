// Sinkhorn-Knopp on as many small matrices at once as a SIMD vector has lanes. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_SINKHORN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_SINKHORN_INL_H_
#undef BRAID_MHC_KERNELS_SINKHORN_INL_H_
#else
#define BRAID_MHC_KERNELS_SINKHORN_INL_H_
#endif

#include <cstdint>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Matrices [n, n], lane by lane: entry (i, j) of all of them is the vector at (i n + j) Lanes(d).
/// Half-steps normalise alternate axes; the first two work on logarithms, so that logits of any size survive
/// (after them every sum lies in [1 / n^2, n]); the rest divide. kN is n, or 0 when it is known at run time only.
template <class D, int kN>
class SinkhornLanes {
 public:
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;

  /// `rows_last`: row sums are exact, columns are normalised first.
  SinkhornLanes(D d, int64_t n, int iterations, bool rows_last)
      : d_(d), n_(n), half_steps_(2 * iterations), rows_last_(rows_last) {}

  /// Vectors of workspace that backward() needs beside p and g.
  static int64_t workspace_vectors(int64_t n, int iterations) { return n * n + 2 * iterations * n; }

  /// Logits to doubly stochastic matrices, in place.
  void forward(T* p) const {
    normalize_logits(p, line(0));
    normalize_logits(p, line(1));
    for (int64_t e = 0; e < n() * n(); ++e) store(p, e, exp(load(p, e)));
    for (int step = 2; step < half_steps_; ++step) divide_by_sums(p, line(step), nullptr);
  }

  /// p: the logits (overwritten); g: the cotangent of the result, replaced by that of the logits.
  /// Only the sums of each half-step are kept: multiplying by them undoes the division.
  void backward(T* p, T* g, T* workspace) const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d_));
    T* first = workspace;  // logarithms after the first half-step
    T* sums = workspace + n() * n() * lanes;
    normalize_logits(p, line(0));
    for (int64_t e = 0; e < n() * n(); ++e) store(first, e, load(p, e));
    normalize_logits(p, line(1));
    for (int64_t e = 0; e < n() * n(); ++e) store(p, e, exp(load(p, e)));
    for (int step = 2; step < half_steps_; ++step) divide_by_sums(p, line(step), sums + step * n() * lanes);

    for (int step = half_steps_ - 1; step >= 2; --step) undo_division(p, g, line(step), sums + step * n() * lanes);
    // log p = l - logsumexp(l) has dl = d(log p) - exp(log p) sum(d(log p)).
    for (int64_t e = 0; e < n() * n(); ++e) store(g, e, hn::Mul(load(g, e), load(p, e)));
    subtract_share_of_sum(p, g, line(1));
    for (int64_t e = 0; e < n() * n(); ++e) store(p, e, exp(load(first, e)));
    subtract_share_of_sum(p, g, line(0));
  }

 private:
  /// The entries of line k are k * next + m * step for m in [0, n).
  struct Line {
    int64_t next, step;
  };

  int64_t n() const { return kN != 0 ? kN : n_; }
  Line line(int half_step) const { return (half_step % 2 == 1) == rows_last_ ? Line{n(), 1} : Line{1, n()}; }

  V load(const T* p, int64_t entry) const { return hn::Load(d_, p + entry * static_cast<int64_t>(hn::Lanes(d_))); }
  void store(T* p, int64_t entry, V v) const { hn::Store(v, d_, p + entry * static_cast<int64_t>(hn::Lanes(d_))); }

  /// exp that lets NaN through (Highway's gives 0).
  V exp(V x) const { return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d_, x)); }

  /// l -= logsumexp(l) along each line.
  void normalize_logits(T* l, Line line) const {
    for (int64_t k = 0; k < n(); ++k) {
      const int64_t at = k * line.next;
      V top = load(l, at);
      for (int64_t m = 1; m < n(); ++m) top = hn::Max(top, load(l, at + m * line.step));
      V sum = hn::Zero(d_);
      for (int64_t m = 0; m < n(); ++m) sum = hn::Add(sum, exp(hn::Sub(load(l, at + m * line.step), top)));
      const V log_sum = hn::Add(top, hn::Log(d_, sum));
      for (int64_t m = 0; m < n(); ++m) store(l, at + m * line.step, hn::Sub(load(l, at + m * line.step), log_sum));
    }
  }

  void divide_by_sums(T* p, Line line, T* sums) const {
    for (int64_t k = 0; k < n(); ++k) {
      const int64_t at = k * line.next;
      V sum = load(p, at);
      for (int64_t m = 1; m < n(); ++m) sum = hn::Add(sum, load(p, at + m * line.step));
      if (sums != nullptr) store(sums, k, sum);
      const V inverse = hn::Div(hn::Set(d_, T{1}), sum);
      for (int64_t m = 0; m < n(); ++m) store(p, at + m * line.step, hn::Mul(load(p, at + m * line.step), inverse));
    }
  }

  /// y = v / s, s = sum(v): dv = (g - sum(g y)) / s and v = y s.
  void undo_division(T* p, T* g, Line line, const T* sums) const {
    for (int64_t k = 0; k < n(); ++k) {
      const int64_t at = k * line.next;
      V dot = hn::Zero(d_);
      for (int64_t m = 0; m < n(); ++m) dot = hn::MulAdd(load(g, at + m * line.step), load(p, at + m * line.step), dot);
      const V sum = load(sums, k), inverse = hn::Div(hn::Set(d_, T{1}), sum);
      for (int64_t m = 0; m < n(); ++m) {
        const int64_t e = at + m * line.step;
        store(g, e, hn::Mul(hn::Sub(load(g, e), dot), inverse));
        store(p, e, hn::Mul(load(p, e), sum));
      }
    }
  }

  /// g -= p sum(g) along each line.
  void subtract_share_of_sum(const T* p, T* g, Line line) const {
    for (int64_t k = 0; k < n(); ++k) {
      const int64_t at = k * line.next;
      V sum = load(g, at);
      for (int64_t m = 1; m < n(); ++m) sum = hn::Add(sum, load(g, at + m * line.step));
      for (int64_t m = 0; m < n(); ++m) {
        const int64_t e = at + m * line.step;
        store(g, e, hn::NegMulAdd(load(p, e), sum, load(g, e)));
      }
    }
  }

  D d_;
  int64_t n_;
  int half_steps_;
  bool rows_last_;
};

}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

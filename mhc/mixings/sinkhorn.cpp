#include <algorithm>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/sinkhorn.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

using braid::kernels::HWY_NAMESPACE::exp_to_one;

/// 1 / x of sums of positive numbers, or NaN. AVX-512 divides 16 floats in 10 to 16 cycles; two steps of third order
/// from the integer that has the negative exponent, 12 % off, take 4 and have the same bits on every processor, which
/// guesses of the processor's own do not.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V reciprocal(D d, V x) {
  const V one = hn::Set(d, 1);
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::RebindToSigned<D> di;
    V y = hn::BitCast(d, hn::Sub(hn::Set(di, 0x7ef311c7), hn::BitCast(di, x)));
    for (int step = 0; step < 2; ++step) {
      const V e = hn::NegMulAdd(x, y, one);
      y = hn::MulAdd(y, hn::MulAdd(e, e, e), y);
    }
    return y;
  } else {
    return hn::Div(one, x);
  }
}

/// The entries of a matrix [kN, kN] in registers: AVX-512 has room for two of n = 4. With kN = 0, when n is known at
/// run time only, they stay in memory.
template <class D, int kN>
class Entries {
 public:
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;

  Entries(D d, T* p) : d_(d), p_(p) {
    for (std::int64_t e = 0; e < kN * kN; ++e) v_[e] = hn::Load(d, at(e));
  }
  HWY_INLINE V get(std::int64_t entry) const {
    if constexpr (kN == 0)
      return hn::Load(d_, at(entry));
    else
      return v_[entry];
  }
  HWY_INLINE void set(std::int64_t entry, V v) {
    if constexpr (kN == 0)
      hn::Store(v, d_, at(entry));
    else
      v_[entry] = v;
  }
  void store() const {
    for (std::int64_t e = 0; e < kN * kN; ++e) hn::Store(v_[e], d_, at(e));
  }

 private:
  T* at(std::int64_t entry) const { return p_ + entry * static_cast<std::int64_t>(hn::Lanes(d_)); }

  D d_;
  T* p_;
  V v_[std::max(1, kN* kN)];
};

enum class Lines { rows, columns };

/// Half-steps normalize alternate axes; the first two work on logarithms, so that logits of any size survive
/// (after them every sum lies in [1 / n^2, n]); the rest divide. With eps, only the first does: its softmax + eps is
/// then divided by its sums + eps.
template <class D, int kN>
class Sinkhorn : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::d_, Base::lanes, Base::load, Base::n, Base::nan_unless_finite, Base::store;
  using typename Base::T, typename Base::V;

 public:
  explicit Sinkhorn(const Mixing& m)
      : Base(m),
        iterations_(m.settings().iterations),
        rows_last_(m.settings().exact == Marginal::rows),
        eps_(static_cast<T>(m.settings().eps)) {}

  /// The logits, the iterates between, and the sums of the lines.
  std::int64_t workspace() const { return 2 * n() * n() + 2 * n() * (iterations_ - 1); }

  void forward(const T* logits, T* h, T*) const {
    std::copy_n(logits, n() * n() * lanes(), h);
    rows_last_ ? normalize<Lines::columns, Lines::rows>(h) : normalize<Lines::rows, Lines::columns>(h);
  }

  void vjp(const T* logits, const T*, const T* dh, T* dlogits, T* workspace) const {
    const std::int64_t size = n() * n() * lanes();
    T *p = workspace, *rest = workspace + size;
    std::copy_n(logits, size, p);
    std::copy_n(dh, size, dlogits);
    rows_last_ ? normalize_vjp<Lines::columns, Lines::rows>(p, dlogits, rest)
               : normalize_vjp<Lines::rows, Lines::columns>(p, dlogits, rest);
  }

 private:
  /// Logits to doubly stochastic matrices, in place.
  template <Lines first, Lines second>
  void normalize(T* p) const {
    start<first, second>(p, nullptr);
    Entries<D, kN> entries(d_, p);
    if (eps_ != 0) divide_by_sums<second>(entries, nullptr);
    for (int k = 1; k < iterations_; ++k) {
      divide_by_sums<first>(entries, nullptr);
      divide_by_sums<second>(entries, nullptr);
    }
    entries.store();
  }

  /// p: the logits (overwritten); g: the cotangent of the result, replaced by that of the logits.
  /// With l = log p the vjp of every half-step is dl -= p (sums of dl along its lines), and that of p = exp(l) is
  /// dl = p dp. Of the iterates only the sums are kept: multiplying by them undoes the division. With eps, the first
  /// half-step is a softmax: dl = s (dp - <s, dp>), s = p - eps.
  template <Lines first, Lines second>
  void normalize_vjp(T* p, T* g, T* workspace) const {
    const std::int64_t step = n() * lanes();
    T* log_p = workspace;  // after the first half-step; with eps, unused but for the sums of the second
    T* sums = workspace + n() * step;
    start<first, second>(p, log_p);
    {
      Entries<D, kN> y(d_, p);
      if (eps_ != 0) divide_by_sums<second>(y, workspace);
      for (int k = 1; k < iterations_; ++k, sums += 2 * step) {
        divide_by_sums<first>(y, sums);
        divide_by_sums<second>(y, sums + step);
      }
      Entries<D, kN> dl(d_, g);
      for (std::int64_t e = 0; e < n() * n(); ++e) dl.set(e, hn::Mul(dl.get(e), y.get(e)));
      for (int k = 1; k < iterations_; ++k) {
        sums -= 2 * step;
        undo_division<second>(y, dl, sums + step);
        undo_division<first>(y, dl, sums);
      }
      if (eps_ != 0) undo_division<second>(y, dl, workspace);
      y.store();
      dl.store();
    }
    Entries<D, 0> y(d_, p), dl(d_, g);
    if (eps_ == 0) {
      subtract_share<second>(y, dl);
      for (std::int64_t e = 0; e < n() * n(); ++e) y.set(e, exp_to_one(d_, load(log_p, e)));
    } else {
      for (std::int64_t e = 0; e < n() * n(); ++e) {
        const V s = hn::Sub(y.get(e), hn::Set(d_, eps_));
        dl.set(e, hn::Div(hn::Mul(s, dl.get(e)), y.get(e)));
        y.set(e, s);
      }
    }
    subtract_share<first>(y, dl);
  }

  /// The index of the k-th entry of a row or column.
  template <Lines lines>
  std::int64_t entry(std::int64_t line, std::int64_t k) const {
    return lines == Lines::rows ? line * n() + k : k * n() + line;
  }

  template <Lines lines>
  V line_max(const T* l, std::int64_t line) const {
    V top = load(l, entry<lines>(line, 0));
    for (std::int64_t k = 1; k < n(); ++k) top = hn::Max(top, load(l, entry<lines>(line, k)));
    return top;
  }

  template <Lines lines>
  HWY_INLINE V line_sum(const auto& p, std::int64_t line) const {
    V sum = p.get(entry<lines>(line, 0));
    for (std::int64_t k = 1; k < n(); ++k) sum = hn::Add(sum, p.get(entry<lines>(line, k)));
    return sum;
  }

  /// l -= logsumexp(l) along each line.
  template <Lines lines>
  void log_softmax(T* l) const {
    for (std::int64_t i = 0; i < n(); ++i) {
      const V top = line_max<lines>(l, i);
      V sum = hn::Zero(d_);
      for (std::int64_t k = 0; k < n(); ++k)
        sum = hn::Add(sum, exp_to_one(d_, hn::Sub(load(l, entry<lines>(i, k)), top)));
      const V log_sum = hn::Add(top, braid::kernels::HWY_NAMESPACE::log(d_, sum));
      for (std::int64_t k = 0; k < n(); ++k)
        store(l, entry<lines>(i, k), hn::Sub(load(l, entry<lines>(i, k)), log_sum));
    }
  }

  /// l <- exp(l) / sum(exp(l)) along each line; NaN when `poison` is.
  template <Lines lines>
  void softmax_lines(T* l, V poison) const {
    for (std::int64_t i = 0; i < n(); ++i) {
      const V top = line_max<lines>(l, i);
      V sum = poison;
      for (std::int64_t k = 0; k < n(); ++k) {
        const V p = exp_to_one(d_, hn::Sub(load(l, entry<lines>(i, k)), top));
        store(l, entry<lines>(i, k), p);
        sum = hn::Add(sum, p);
      }
      const V inverse = hn::Div(hn::Set(d_, 1), sum);
      for (std::int64_t k = 0; k < n(); ++k)
        store(l, entry<lines>(i, k), hn::Mul(load(l, entry<lines>(i, k)), inverse));
    }
  }

  /// The half-steps that do not divide, in place; log_p, unless null, keeps the logarithms after the first.
  template <Lines first, Lines second>
  void start(T* p, T* log_p) const {
    const V poison = nan_unless_finite(p);
    if (eps_ != 0) {
      softmax_lines<first>(p, poison);
      for (std::int64_t e = 0; e < n() * n(); ++e) store(p, e, hn::Add(load(p, e), hn::Set(d_, eps_)));
      return;
    }
    log_softmax<first>(p);
    if (log_p != nullptr) std::copy_n(p, n() * n() * lanes(), log_p);
    softmax_lines<second>(p, poison);
  }

  template <Lines lines>
  HWY_INLINE void divide_by_sums(Entries<D, kN>& p, T* sums) const {
    for (std::int64_t i = 0; i < n(); ++i) {
      const V sum = hn::Add(line_sum<lines>(p, i), hn::Set(d_, eps_)), inverse = reciprocal(d_, sum);
      if (sums != nullptr) store(sums, i, sum);
      for (std::int64_t k = 0; k < n(); ++k) p.set(entry<lines>(i, k), hn::Mul(p.get(entry<lines>(i, k)), inverse));
    }
  }

  /// The vjp of divide_by_sums; p becomes what it was before.
  template <Lines lines>
  HWY_INLINE void undo_division(Entries<D, kN>& p, Entries<D, kN>& dl, const T* sums) const {
    subtract_share<lines>(p, dl);
    for (std::int64_t i = 0; i < n(); ++i) {
      const V sum = load(sums, i);
      for (std::int64_t k = 0; k < n(); ++k) p.set(entry<lines>(i, k), hn::Mul(p.get(entry<lines>(i, k)), sum));
    }
  }

  /// dl -= p sum(dl) along each line.
  template <Lines lines>
  HWY_INLINE void subtract_share(const auto& p, auto& dl) const {
    for (std::int64_t i = 0; i < n(); ++i) {
      const V sum = line_sum<lines>(dl, i);
      for (std::int64_t k = 0; k < n(); ++k) {
        const std::int64_t e = entry<lines>(i, k);
        dl.set(e, hn::NegMulAdd(p.get(e), sum, dl.get(e)));
      }
    }
  }

  int iterations_;
  bool rows_last_;
  T eps_;
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Sinkhorn>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

/// The axis that is normalized first, and the other.
static Var composed(const Var& logits, const Mixing& m) {
  const auto& [iterations, exact, eps, gamma, block] = m.settings();
  const int first = exact == Marginal::columns ? -1 : -2, second = -3 - first;
  if (eps != 0) {
    Var y = softmax(square(logits, m.n()), first) + eps;
    y = y / (sum(y, {second}, true) + eps);
    for (int k = 1; k < iterations; ++k)
      for (const int axis : {first, second}) y = y / (sum(y, {axis}, true) + eps);
    return y;
  }
  Var log_p = square(logits, m.n());
  for (int k = 0; k < iterations; ++k)
    for (const int axis : {first, second}) log_p = log_softmax(log_p, axis);
  return exp(log_p);
}

/// Sinkhorn-Knopp, arXiv:2512.24880: exp(l), rows and columns normalized in turn. See ops/sinkhorn.h.
extern constinit const Family sinkhorn = {
    .name = "sinkhorn",
    .traits =
        [](const MixingSettings& s) {
          return MixingTraits{.rows = s.exact == Marginal::rows && s.eps == 0,
                              .columns = s.exact == Marginal::columns && s.eps == 0};
        },
    .logits = [](std::int64_t n, const MixingSettings&) { return n * n; },
    .identity = diagonal_logit,
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

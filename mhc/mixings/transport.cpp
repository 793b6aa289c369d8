#include <numeric>

#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/transport.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

constexpr double kLeastWidth = 1e-7;

template <class D, int kN>
class Transport : public Lanes<D, kN> {
  using Base = Lanes<D, kN>;
  using Base::lanes, Base::load, Base::n, Base::set, Base::store;
  using typename Base::T, typename Base::V;

 public:
  using Base::Base;

  std::int64_t workspace() const { return 3 * n(); }

  void forward(const T* logits, T* h, T* columns) const {
    T* tails = columns + n() * lanes();
    for (std::int64_t j = 0; j < n(); ++j) store(columns, j, set(1));
    for (std::int64_t i = 0; i + 1 < n(); ++i) {
      V row = set(1);
      sum_tails(columns, tails);
      for (std::int64_t j = 0; j + 1 < n(); ++j) {
        const Range range = range_of(row, load(columns, j), load(tails, j));
        const V x = hn::MulAdd(range.width, share(logits, i, j), range.low);
        take(x, h, i, j, columns);
        row = hn::Sub(row, x);
      }
      take(row, h, i, n() - 1, columns);
    }
    for (std::int64_t j = 0; j < n(); ++j) store(h, (n() - 1) * n() + j, load(columns, j));
  }

  /// From the last row to the first; dcolumns is the cotangent of the rests of the columns before a row.
  void vjp(const T* logits, const T* h, const T* dh, T* dlogits, T* columns) const {
    T* dcolumns = columns + 2 * n() * lanes();
    for (std::int64_t j = 0; j < n(); ++j) {
      store(columns, j, load(h, (n() - 1) * n() + j));
      store(dcolumns, j, load(dh, (n() - 1) * n() + j));
    }
    for (std::int64_t i = n() - 2; i >= 0; --i) row_vjp(i, logits, h, dh, dlogits, columns, dcolumns);
  }

 private:
  struct Range {
    V low, width;
    hn::Mask<D> spills;    // low is the part that the later columns cannot take
    hn::Mask<D> row_ends;  // high is the rest of the row
    hn::Mask<D> narrow;    // the width is the least one
  };

  HWY_INLINE Range range_of(V row, V column, V tail) const {
    const V spill = hn::Sub(row, tail), zero = hn::Zero(this->d_), least = set(kLeastWidth);
    const V low = hn::Max(spill, zero), high = hn::Min(row, column), width = hn::Sub(high, low);
    return {low, hn::Max(width, least), hn::Gt(spill, zero), hn::Lt(row, column), hn::Lt(width, least)};
  }

  /// sigmoid(l), but NaN for infinite l.
  HWY_INLINE V share(const T* logits, std::int64_t i, std::int64_t j) const {
    const V l = load(logits, i * (n() - 1) + j);
    return hn::Add(braid::kernels::HWY_NAMESPACE::sigmoid(this->d_, l), hn::Sub(l, l));
  }

  HWY_INLINE void take(V x, T* h, std::int64_t i, std::int64_t j, T* columns) const {
    store(h, i * n() + j, x);
    store(columns, j, hn::Sub(load(columns, j), x));
  }

  /// For each column, the sum of the rests of the columns after it.
  void sum_tails(const T* columns, T* tails) const {
    V sum = hn::Zero(this->d_);
    for (std::int64_t j = n() - 1; j >= 0; --j) {
      store(tails, j, sum);
      sum = hn::Add(sum, load(columns, j));
    }
  }

  /// With d = dx - drow - dcolumn of x = low + (high - low) s: dlow = d (1 - s), dhigh = d s, ds = d (high - low). The
  /// rests of the row and of the column before an entry are those after it plus the entry.
  void row_vjp(std::int64_t i, const T* logits, const T* h, const T* dh, T* dlogits, T* columns, T* dcolumns) const {
    T *tails = columns + n() * lanes(), *dtails = tails;
    for (std::int64_t j = 0; j < n(); ++j) store(columns, j, hn::Add(load(columns, j), load(h, i * n() + j)));
    sum_tails(columns, tails);
    const std::int64_t last = i * n() + n() - 1;
    V row = load(h, last), drow = hn::Sub(load(dh, last), load(dcolumns, n() - 1));
    for (std::int64_t j = n() - 2; j >= 0; --j) {
      row = hn::Add(row, load(h, i * n() + j));
      const Range range = range_of(row, load(columns, j), load(tails, j));
      const V s = share(logits, i, j), d = hn::Sub(load(dh, i * n() + j), hn::Add(drow, load(dcolumns, j)));
      const V dwidth = hn::Mul(d, s), dhigh = hn::IfThenZeroElse(range.narrow, dwidth);
      const V dspill = hn::IfThenElseZero(range.spills, hn::Sub(d, dhigh));
      store(dlogits, i * (n() - 1) + j, hn::Mul(hn::Mul(dwidth, hn::Sub(set(1), s)), range.width));
      store(dtails, j, dspill);
      drow = hn::Add(drow, hn::Add(dspill, hn::IfThenElseZero(range.row_ends, dhigh)));
      store(dcolumns, j, hn::Add(load(dcolumns, j), hn::IfThenZeroElse(range.row_ends, dhigh)));
    }
    V sum = hn::Zero(this->d_);
    for (std::int64_t j = 1; j < n(); ++j) {
      sum = hn::Add(sum, load(dtails, j - 1));
      store(dcolumns, j, hn::Sub(load(dcolumns, j), sum));
    }
  }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Transport>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

/// Row by row; columns[j] is the rest of column j. Where bounds are equal, as at logits 0, the gradient is that of the
/// kernel, not the mean of both sides.
static Var composed(const Var& logits, const Mixing& m) {
  const auto n = static_cast<std::size_t>(m.n());
  const Var one = ones(logits.shape().without(-1), logits.dtype());
  std::vector<Var> columns(n, one), rows;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    std::vector<Var> entries;
    Var row = one;
    for (std::size_t j = 0; j + 1 < n; ++j) {
      const Var tail =
          std::accumulate(columns.begin() + static_cast<std::ptrdiff_t>(j) + 2, columns.end(), columns[j + 1]);
      const Var low = relu(row - tail), high = where(less(row, columns[j]), row, columns[j]);
      const Var s = sigmoid(select(logits, -1, static_cast<std::int64_t>(i * (n - 1) + j)));
      entries.push_back(low + maximum(high - low, HWY_NAMESPACE::kLeastWidth) * s);
      row = row - entries.back();
    }
    entries.push_back(row);
    for (std::size_t j = 0; j < n; ++j) columns[j] = columns[j] - entries[j];
    rows.push_back(stack(entries, -1));
  }
  rows.push_back(stack(columns, -1));
  return stack(rows, -2);
}

/// TBP, arXiv:2605.21724: (n - 1)^2 logits fill the matrix row by row, each entry between the bounds that the
/// marginals leave; the last row and column get the rest, so that rows and columns sum to 1 to rounding.
///
///     h_ij = low + (high - low) sigmoid(l_ij)
///     low = max(0, row i's rest - the rests of the columns after j), high = min(row i's rest, column j's rest)
///
/// The paper's max has a third term, column j's rest - the rests of the rows below, which is never more than the
/// second. A width high - low below 1e-7 counts as 1e-7, as in the paper: an entry may exceed its bound, so that others
/// become some -1e-7, and the sums stay exact. Logits 0 are not the identity. The gradient jumps where max and min
/// change sides, and early entries move most of the matrix.
extern constinit const Family transport = {
    .name = "transport",
    .traits = [](const MixingSettings&) { return MixingTraits{.rows = true, .columns = true, .negative = true}; },
    .logits = [](std::int64_t n, const MixingSettings&) { return (n - 1) * (n - 1); },
    .identity = [](std::int64_t n, std::int64_t k) { return k % n == 0 ? 8.0 : -8.0; },
    .composed = composed,
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE

// Inner products of streams, one token at a time. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_
#undef BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_
#else
#define BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <braid/mhc/kernels/channels-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

using braid::kernels::HWY_NAMESPACE::for_each_part, braid::kernels::HWY_NAMESPACE::kParts;
using braid::kernels::HWY_NAMESPACE::sum_lanes;

/// The sums of one row: in kParts vectors, so that their order is that of 64 bytes for every instruction set.
template <class D>
using Sums = hn::Vec<D>[kParts<D>];

/// As many columns as leave the sums of four rows in 16 registers.
template <class D>
inline constexpr int kColumnsAtOnce = std::max(1, 4 / kParts<D>);

/// Sums over lanes, which replace `sums` or are added to them. Adding -0 keeps the sign of a zero.
template <class D, class T>
HWY_INLINE void sums_of_lanes(D d, const Sums<D>* v, int count, bool add, T* sums) {
  for (int i = 0; i < count; ++i) sums[i] = sum_lanes<kParts<D>>(d, v[i]) + (add ? sums[i] : -T{0});
}

#if HWY_TARGET != HWY_SCALAR
/// The sum of the blocks of 128 bits of kCount vectors, by halves.
template <int kCount, class D>
HWY_INLINE auto add_blocks(D d, const hn::Vec<D>* v) {
  if constexpr (kCount > 1) {
    hn::Vec<D> halves[kCount / 2];
    for (int i = 0; i < kCount / 2; ++i) halves[i] = hn::Add(v[i], v[i + kCount / 2]);
    return add_blocks<kCount / 2>(d, halves);
  } else if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    const hn::Vec<hn::Half<D>> sum = hn::Add(hn::LowerHalf(half, *v), hn::UpperHalf(half, *v));
    return add_blocks<1>(half, &sum);
  } else {
    return *v;
  }
}
#endif

/// Four at once take half of the shuffles, for the same bits.
template <class D, class T>
HWY_INLINE void sums_of_four(D d, const Sums<D>* v, bool add, T* sums) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4 && hn::MaxLanes(D()) >= 4) {
    const hn::FixedTag<T, 4> four;
    const hn::Repartition<std::uint64_t, decltype(four)> pairs;
    const auto block = [d](const Sums<D>& sum) HWY_ATTR { return add_blocks<kParts<D>>(d, sum); };
    const auto half = [four](auto a, auto b) HWY_ATTR {
      return hn::Add(hn::InterleaveLower(four, a, b), hn::InterleaveUpper(four, a, b));
    };
    const auto ab = hn::BitCast(pairs, half(block(v[0]), block(v[1])));
    const auto cd = hn::BitCast(pairs, half(block(v[2]), block(v[3])));
    const auto total = hn::Add(hn::BitCast(four, hn::InterleaveLower(pairs, ab, cd)),
                               hn::BitCast(four, hn::InterleaveUpper(pairs, ab, cd)));
    return hn::StoreU(add ? hn::Add(hn::LoadU(four, sums), total) : total, four, sums);
  }
#endif
  sums_of_lanes(d, v, 4, add, sums);
}

/// <g_r, x_k> for kRows and kColumns rows; with kSquares <g_r, g_r>, in one column.
template <int kRows, int kColumns, bool kSquares = false, class G, class X, class T>
HWY_INLINE void products_of_rows(std::int64_t channels, const G* g, const X* x, bool add, T* products,
                                 std::int64_t row_step) {
  using D = hn::ScalableTag<T>;
  const D d;
  Sums<D> sum[kRows][kColumns];
  for (auto& row : sum)
    for (auto& column : row)
      for (auto& s : column) s = hn::Zero(d);
  for_each_part(d, channels, [&](std::int64_t c, int part_index, auto part) HWY_ATTR {
    hn::Vec<D> right[kColumns];
    for (int k = 0; k < kColumns && !kSquares; ++k) right[k] = part.load(d, x + k * channels + c);
    for (int r = 0; r < kRows; ++r) {
      const auto left = part.load(d, g + r * channels + c);
      for (int k = 0; k < kColumns; ++k)
        sum[r][k][part_index] = hn::MulAdd(left, kSquares ? left : right[k], sum[r][k][part_index]);
    }
  });
  if constexpr (kRows == 4 && kColumns == 1)
    if (row_step == 1) return sums_of_four(d, &sum[0][0], add, products);
  for (int r = 0; r < kRows; ++r)
    if constexpr (kColumns == 4)
      sums_of_four(d, sum[r], add, products + r * row_step);
    else
      sums_of_lanes(d, sum[r], kColumns, add, products + r * row_step);
}

/// squares_i = <x_i, x_i>: x [n, C].
template <class S, class T = Compute<S>>
void squares_of(std::int64_t n, std::int64_t channels, const S* x, T* squares) {
  by_groups<4, true>(n, [=](auto rows, std::int64_t i) {
    const S* row = x + i * channels;
    products_of_rows<decltype(rows)::value, 1, true>(channels, row, row, false, squares + i, 1);
  });
}

/// rstd_i = 1 / sqrt(mean(x_i^2) + eps): x [n, C].
template <class S, class T = Compute<S>>
void inverse_rms_of(std::int64_t n, std::int64_t channels, const S* x, double eps, T* rstd) {
  squares_of(n, channels, x, rstd);
  for (std::int64_t i = 0; i < n; ++i)
    rstd[i] = static_cast<T>(1 / std::sqrt(static_cast<double>(rstd[i]) / static_cast<double>(channels) + eps));
}

/// <x, x>: x [n, C].
template <class S, class T = Compute<S>>
T sum_of_squares(std::int64_t n, std::int64_t channels, const S* x) {
  T total = 0;
  for (std::int64_t first = 0; first < n; first += 4) {
    T squares[4] = {};
    squares_of(std::min<std::int64_t>(4, n - first), channels, x + first * channels, squares);
    for (const T square : squares) total += square;
  }
  return total;
}

/// products_ij = <g_i, x_j> (+ products_ij when `accumulate`): g [n, C], x [m, C], products [n, m].
template <bool accumulate = false, class G, class X, class T = Compute<X>>
void inner_products(std::int64_t n, std::int64_t m, std::int64_t channels, const G* g, const X* x, T* products) {
  by_groups<4, true>(n, [=](auto rows, std::int64_t i) {
    by_groups<kColumnsAtOnce<hn::ScalableTag<T>>, true>(m, [=](auto columns, std::int64_t j) {
      products_of_rows<decltype(rows)::value, decltype(columns)::value>(channels, g + i * channels, x + j * channels,
                                                                        accumulate, products + i * m + j, m);
    });
  });
}

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

// Inner products of streams, one token at a time. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_
#undef BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_
#else
#define BRAID_MHC_KERNELS_INNER_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <braid/mhc/kernels/channels-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

/// Sums over the lanes of vectors, which replace `sums` or are added to them.
template <class D, class V, class T>
HWY_INLINE void sums_of_lanes(D d, const V* v, int count, bool add, T* sums) {
  for (int i = 0; i < count; ++i) sums[i] = hn::GetLane(hn::SumOfLanes(d, v[i])) + (add ? sums[i] : T{0});
}

#if HWY_TARGET == HWY_SCALAR

template <class D, class V, class T>
HWY_INLINE void sums_of_four(D d, const V* v, bool add, T* sums) {
  sums_of_lanes(d, v, 4, add, sums);
}

#else

/// The sum of the blocks of 128 bits of a vector.
template <class D, class V>
HWY_INLINE auto add_blocks(D, V v) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// Four at once take a third of the shuffles.
template <class D, class V, class T>
HWY_INLINE void sums_of_four(D d, const V* v, bool add, T* sums) {
  if constexpr (sizeof(T) == 4 && hn::MaxLanes(D()) >= 4) {
    const hn::Repartition<std::uint64_t, D> pairs;
    const auto half = [d](V a, V b)
                          HWY_ATTR { return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)); };
    const auto ab = hn::BitCast(pairs, half(v[0], v[1])), cd = hn::BitCast(pairs, half(v[2], v[3]));
    const V blocks = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, cd)),
                             hn::BitCast(d, hn::InterleaveUpper(pairs, ab, cd)));  // in every 128 bits one of each
    const hn::FixedTag<T, 4> four;
    const auto total = add_blocks(d, blocks);
    hn::StoreU(add ? hn::Add(hn::LoadU(four, sums), total) : total, four, sums);
  } else {
    sums_of_lanes(d, v, 4, add, sums);
  }
}

#endif

/// <x_r, x_r> for kRows rows at the channels [begin, end).
template <int kRows, class D, class S, class T>
HWY_INLINE void squares_of_rows(D d, std::int64_t begin, std::int64_t end, std::int64_t channels, const S* x, bool add,
                                T* squares) {
  using V = hn::Vec<D>;
  V sum[kRows];
  for (V& s : sum) s = hn::Zero(d);
  for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d)))
    for (int r = 0; r < kRows; ++r) {
      const V v = load(d, x + r * channels + c);
      sum[r] = hn::MulAdd(v, v, sum[r]);
    }
  if constexpr (kRows == 4)
    sums_of_four(d, sum, add, squares);
  else
    sums_of_lanes(d, sum, kRows, add, squares);
}

/// squares_i = <x_i, x_i>: x [n, C].
template <class S, class T = Compute<S>>
void squares_of(std::int64_t n, std::int64_t channels, const S* x, T* squares) {
  if (channels == 0) std::fill_n(squares, n, T{0});
  over_channels<T>(channels, [=](auto d, std::int64_t begin, std::int64_t end) {
    by_rows(d, n, [=](auto rows, std::int64_t i) {
      squares_of_rows<decltype(rows)::value>(d, begin, end, channels, x + i * channels, begin != 0, squares + i);
    });
  });
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

/// <g_r, x_k> for kRows and kColumns rows at the channels [begin, end).
template <int kRows, int kColumns, class D, class G, class X, class T>
HWY_INLINE void products_of_rows(D d, std::int64_t begin, std::int64_t end, std::int64_t channels, const G* g,
                                 const X* x, bool add, T* products, std::int64_t row_step) {
  using V = hn::Vec<D>;
  V sum[kRows][kColumns];
  for (auto& row : sum)
    for (V& s : row) s = hn::Zero(d);
  for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
    V right[kColumns];
    for (int k = 0; k < kColumns; ++k) right[k] = load(d, x + k * channels + c);
    for (int r = 0; r < kRows; ++r) {
      const V left = load(d, g + r * channels + c);
      for (int k = 0; k < kColumns; ++k) sum[r][k] = hn::MulAdd(left, right[k], sum[r][k]);
    }
  }
  if constexpr (kRows == 4 && kColumns == 1) {
    const V column[4] = {sum[0][0], sum[1][0], sum[2][0], sum[3][0]};
    if (row_step == 1) return sums_of_four(d, column, add, products);
  }
  for (int r = 0; r < kRows; ++r)
    if constexpr (kColumns == 4)
      sums_of_four(d, sum[r], add, products + r * row_step);
    else
      sums_of_lanes(d, sum[r], kColumns, add, products + r * row_step);
}

/// products_ij = <g_i, x_j> (+ products_ij when `accumulate`): g [n, C], x [m, C], products [n, m] with rows `row_step`
/// apart.
template <bool accumulate = false, class G, class X, class T = Compute<X>>
void inner_products(std::int64_t n, std::int64_t m, std::int64_t channels, const G* g, const X* x, T* products,
                    std::int64_t row_step) {
  for (std::int64_t i = 0; channels == 0 && !accumulate && i < n; ++i) std::fill_n(products + i * row_step, m, T{0});
  over_channels<T>(channels, [=](auto d, std::int64_t begin, std::int64_t end) {
    const bool add = accumulate || begin != 0;
    by_rows(d, n, [=](auto rows, std::int64_t i) {
      by_rows(d, m, [=](auto columns, std::int64_t j) {
        products_of_rows<decltype(rows)::value, decltype(columns)::value>(
            d, begin, end, channels, g + i * channels, x + j * channels, add, products + i * row_step + j, row_step);
      });
    });
  });
}

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

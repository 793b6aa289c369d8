// Small matrices applied to streams, one token at a time: the inner loops of every stream kernel.
// Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_MIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_MIX_INL_H_
#undef BRAID_MHC_KERNELS_MIX_INL_H_
#else
#define BRAID_MHC_KERNELS_MIX_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/tiles.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A matrix [rows, columns] by its steps, so that a transpose is a swap.
template <class T>
struct Coefficients {
  const T* data;
  int64_t row_step, column_step;

  T at(int64_t row, int64_t column) const { return data[row * row_step + column * column_step]; }
};

/// Calls `f(std::integral_constant<I>, first)` for groups of I = 4 rows, then one of the 1 to 3 that are left.
template <class F>
void in_fours(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) f(std::integral_constant<int, 4>(), i);
  if (n - i == 3) f(std::integral_constant<int, 3>(), i);
  if (n - i == 2) f(std::integral_constant<int, 2>(), i);
  if (n - i == 1) f(std::integral_constant<int, 1>(), i);
}

/// Calls `f(d, begin, end)` for the channels that fill whole vectors, of at most kCap lanes, then for the rest one by one.
template <class T, size_t kCap = HWY_MAX_BYTES / sizeof(T), class F>
void over_channels(int64_t channels, F&& f) {
  const hn::CappedTag<T, kCap> d;
  const auto whole = channels - channels % static_cast<int64_t>(hn::Lanes(d));
  if (whole != 0) f(d, int64_t{0}, whole);
  if (whole != channels) f(hn::CappedTag<T, 1>(), whole, channels);
}

/// Asks for the `count` numbers of the next token while this one is worked on: rows are too short for the processor to
/// guess what comes. At n = 4, C = 512 reading streams from memory takes 20 to 35 % less time.
template <class T>
void prefetch(const T* next, int64_t count) {
  for (int64_t i = 0; next != nullptr && i < count; i += 64 / static_cast<int64_t>(sizeof(T))) hwy::Prefetch(next + i);
}

/// Where results go. What no cache can hold goes past them, as kernels::past_caches() says: its lines then need not be
/// read first, a third of what a write would move.
enum class Store { cached, past_caches };

template <Store kStore, class D, class T>
HWY_INLINE void store(D d, hn::Vec<D> v, T* p) {
  if constexpr (kStore == Store::past_caches && hn::MaxLanes(D()) > 1)
    hn::Stream(v, d, p);
  else
    hn::StoreU(v, d, p);
}

template <class T>
void copy_past_caches(int64_t count, const T* from, T* to) {
  const hn::ScalableTag<T> d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d)))
    store<Store::past_caches>(d, hn::LoadU(d, from + i), to + i);
}

/// A term of every row of a mixture.
template <class T>
struct Outer {
  const T* rows = nullptr;    // [n]
  const T* vector = nullptr;  // [C]; null: no such term
};

/// What a mixture starts from: nothing, or rows that are there.
struct FromZero {
  template <class D>
  hn::Vec<D> operator()(D d, int64_t, int64_t) const {
    return hn::Zero(d);
  }
};

template <class T>
struct FromRows {
  const T* rows;  // [n, C]
  int64_t channels;

  template <class D>
  hn::Vec<D> operator()(D d, int64_t row, int64_t c) const {
    return hn::LoadU(d, rows + row * channels + c);
  }
};

/// Rows [row, row + kRows) of mix() at the channels [begin, end). With kColumns = 4 = m, the paper's n, the coefficients
/// stay in registers. (A function, not a lambda: what a lambda captures is read again after every store.)
template <Store kStore, int kRows, int kColumns, class D, class T, class Start>
HWY_INLINE void mix_rows(D d, int64_t begin, int64_t end, int64_t row, int64_t m, int64_t channels, Coefficients<T> a,
                         const T* x, Outer<T> outer, Start start, T* y) {
  using V = hn::Vec<D>;
  V factor[kRows][std::max(1, kColumns)], outer_factor[kRows];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kColumns; ++j) factor[r][j] = hn::Set(d, a.at(row + r, j));
    outer_factor[r] = outer.vector == nullptr ? hn::Zero(d) : hn::Set(d, outer.rows[row + r]);
  }
  y += row * channels;
  for (int64_t c = begin; c < end; c += static_cast<int64_t>(hn::Lanes(d))) {
    V sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = start(d, row + r, c);
    if (outer.vector != nullptr) {
      const V v = hn::LoadU(d, outer.vector + c);
      for (int r = 0; r < kRows; ++r) sum[r] = hn::MulAdd(outer_factor[r], v, sum[r]);
    }
    for (int64_t j = 0; j < (kColumns != 0 ? kColumns : m); ++j) {
      const V v = hn::LoadU(d, x + j * channels + c);
      for (int r = 0; r < kRows; ++r)
        sum[r] = hn::MulAdd(kColumns != 0 ? factor[r][j] : hn::Set(d, a.at(row + r, j)), v, sum[r]);
    }
    for (int r = 0; r < kRows; ++r) store<kStore>(d, sum[r], y + r * channels + c);
  }
}

/// y_i = start_i + outer.rows_i outer.vector + sum_j a_ij x_j. x [m, C], y [n, C]. y may be x or what it starts from when
/// n <= 4: all is then read before it is written.
template <Store kStore, class T, class Start>
void mix_from(Start start, int64_t n, int64_t m, int64_t channels, Coefficients<T> a, const T* x, Outer<T> outer,
              T* y) {
  over_channels<T>(channels, [=](auto d, int64_t begin, int64_t end) {
    in_fours(n, [=](auto rows, int64_t row) {
      constexpr int kRows = decltype(rows)::value;
      const auto mix = m == 4 ? &mix_rows<kStore, kRows, 4, decltype(d), T, Start>
                              : &mix_rows<kStore, kRows, 0, decltype(d), T, Start>;
      mix(d, begin, end, row, m, channels, a, x, outer, start, y);
    });
  });
}

/// y_i = sum_j a_ij x_j + outer.rows_i outer.vector (+ y_i when `accumulate`).
template <bool accumulate = false, class T>
void mix(int64_t n, int64_t m, int64_t channels, Coefficients<T> a, const T* x, Outer<T> outer, T* y) {
  if constexpr (accumulate)
    mix_from<Store::cached>(FromRows<T>{y, channels}, n, m, channels, a, x, outer, y);
  else
    mix_from<Store::cached>(FromZero(), n, m, channels, a, x, outer, y);
}

/// mix() to a y that may go past the caches.
template <class T>
void mix_to(Store where, int64_t n, int64_t m, int64_t channels, Coefficients<T> a, const T* x, Outer<T> outer, T* y) {
  if (where == Store::cached)
    mix(n, m, channels, a, x, outer, y);
  else
    mix_from<Store::past_caches>(FromZero(), n, m, channels, a, x, outer, y);
}

/// Where a result of `size` numbers in rows of `channels` should go.
template <class T>
Store store_for(const T* result, int64_t size, int64_t channels) {
  return kernels::past_caches(result, size, channels) ? Store::past_caches : Store::cached;
}

/// squares_r += <x_r, x_r> for kRows rows at the channels [begin, end).
template <int kRows, class D, class T>
HWY_INLINE void add_squares(D d, int64_t begin, int64_t end, int64_t channels, const T* x, T* squares) {
  using V = hn::Vec<D>;
  V sum[kRows];
  for (V& s : sum) s = hn::Zero(d);
  for (int64_t c = begin; c < end; c += static_cast<int64_t>(hn::Lanes(d)))
    for (int r = 0; r < kRows; ++r) {
      const V v = hn::LoadU(d, x + r * channels + c);
      sum[r] = hn::MulAdd(v, v, sum[r]);
    }
  for (int r = 0; r < kRows; ++r) squares[r] += hn::GetLane(hn::SumOfLanes(d, sum[r]));
}

/// squares_i = <x_i, x_i>: x [n, C].
template <class T>
void squares_of(int64_t n, int64_t channels, const T* x, T* squares) {
  std::fill_n(squares, n, T{0});
  over_channels<T>(channels, [=](auto d, int64_t begin, int64_t end) {
    in_fours(n, [=](auto rows, int64_t i) {
      add_squares<decltype(rows)::value>(d, begin, end, channels, x + i * channels, squares + i);
    });
  });
}

/// products_rk += <g_r, x_k> for kRows and kColumns rows at the channels [begin, end).
template <int kRows, int kColumns, class D, class T>
HWY_INLINE void add_inner_products(D d, int64_t begin, int64_t end, int64_t channels, const T* g, const T* x,
                                   T* products, int64_t row_step) {
  using V = hn::Vec<D>;
  V sum[kRows][kColumns];
  for (auto& row : sum)
    for (V& s : row) s = hn::Zero(d);
  for (int64_t c = begin; c < end; c += static_cast<int64_t>(hn::Lanes(d))) {
    V right[kColumns];
    for (int k = 0; k < kColumns; ++k) right[k] = hn::LoadU(d, x + k * channels + c);
    for (int r = 0; r < kRows; ++r) {
      const V left = hn::LoadU(d, g + r * channels + c);
      for (int k = 0; k < kColumns; ++k) sum[r][k] = hn::MulAdd(left, right[k], sum[r][k]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kColumns; ++k) products[r * row_step + k] += hn::GetLane(hn::SumOfLanes(d, sum[r][k]));
}

/// products_ij = <g_i, x_j> (+ products_ij when `accumulate`): g [n, C], x [m, C], products [n, m] with rows `row_step`
/// apart.
template <bool accumulate = false, class T>
void inner_products(int64_t n, int64_t m, int64_t channels, const T* g, const T* x, T* products, int64_t row_step) {
  for (int64_t i = 0; !accumulate && i < n; ++i) std::fill_n(products + i * row_step, m, T{0});
  over_channels<T>(channels, [=](auto d, int64_t begin, int64_t end) {
    in_fours(n, [=](auto rows, int64_t i) {
      in_fours(m, [=](auto columns, int64_t j) {
        add_inner_products<decltype(rows)::value, decltype(columns)::value>(
            d, begin, end, channels, g + i * channels, x + j * channels, products + i * row_step + j, row_step);
      });
    });
  });
}

}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

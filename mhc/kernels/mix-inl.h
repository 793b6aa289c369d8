// Small matrices applied to streams, one token at a time. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_MIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_MIX_INL_H_
#undef BRAID_MHC_KERNELS_MIX_INL_H_
#else
#define BRAID_MHC_KERNELS_MIX_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <braid/mhc/kernels/channels-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

/// A matrix [rows, columns] by its steps, so that a transpose is a swap.
template <class T>
struct Coefficients {
  const T* data;
  std::int64_t row_step, column_step;

  T at(std::int64_t row, std::int64_t column) const { return data[row * row_step + column * column_step]; }
};

/// A term of every row of a mixture.
template <class T, class V = T>
struct Outer {
  const T* rows = nullptr;    // [n]
  const V* vector = nullptr;  // [C]; null: no such term
};

/// The initial value of a mixture: zero, or given rows [n, C].
inline constexpr auto kFromZero = [](auto d, std::int64_t, std::int64_t) HWY_ATTR { return hn::Zero(d); };

template <class T>
auto from_rows(const T* rows, std::int64_t channels) {
  return [=](auto d, std::int64_t row, std::int64_t c) HWY_ATTR { return load(d, rows + row * channels + c); };
}

/// Rows [row, row + kRows) of mix() at the channels [begin, end). With kColumns = 4 = m, the paper's n, the
/// coefficients stay in registers, where there are 32. (A function, not a lambda: what a lambda captures is read again
/// after every store.)
template <Store kStore, int kRows, int kColumns, class D, class T, class X, class V, class Y, class Start>
HWY_INLINE void mix_rows(D d, std::int64_t begin, std::int64_t end, std::int64_t row, std::int64_t m,
                         std::int64_t channels, Coefficients<T> a, const X* x, Outer<T, V> outer, Start start, Y* y) {
  using Vector = hn::Vec<D>;
  Vector factor[kRows][std::max(1, kColumns)], outer_factor[kRows];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kColumns; ++j) factor[r][j] = hn::Set(d, a.at(row + r, j));
    outer_factor[r] = outer.vector == nullptr ? hn::Zero(d) : hn::Set(d, outer.rows[row + r]);
  }
  y += row * channels;
  for (std::int64_t c = begin; c < end; c += static_cast<std::int64_t>(hn::Lanes(d))) {
    Vector sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = start(d, row + r, c);
    if (outer.vector != nullptr) {
      const Vector v = load(d, outer.vector + c);
      for (int r = 0; r < kRows; ++r) sum[r] = hn::MulAdd(outer_factor[r], v, sum[r]);
    }
    for (std::int64_t j = 0; j < (kColumns != 0 ? kColumns : m); ++j) {
      const Vector v = load(d, x + j * channels + c);
      for (int r = 0; r < kRows; ++r)
        sum[r] = hn::MulAdd(kColumns != 0 ? factor[r][j] : hn::Set(d, a.at(row + r, j)), v, sum[r]);
    }
    for (int r = 0; r < kRows; ++r) store<kStore>(d, sum[r], y + r * channels + c);
  }
}

/// y_i = start_i + outer.rows_i outer.vector + sum_j a_ij x_j, of which each is rounded once. x [m, C], y [n, C]. y may
/// be what it starts from, and x when n <= 4: all of a channel is then read before it is written.
template <Store kStore, class X, class Y, class Start, class V = X>
void mix_from(Start start, std::int64_t n, std::int64_t m, std::int64_t channels, Coefficients<Compute<X>> a,
              const X* x, Outer<Compute<X>, V> outer, Y* y) {
  using T = Compute<X>;
  over_channels<T>(channels, [=](auto d, std::int64_t begin, std::int64_t end) {
    using D = decltype(d);
    // Single channels and other n than the paper's are few, and each form of the loop is more to compile.
    constexpr bool kSingle = hn::MaxLanes(D()) == 1;
    constexpr Store kHow = kSingle ? Store::cached : kStore;
    by_groups<4>(n, [=](auto rows, std::int64_t row) {
      constexpr int kRows = decltype(rows)::value, kFour = kSingle || kRows == 2 || kRows == 3 ? 0 : 4;
      const auto run = m == 4 ? &mix_rows<kHow, kRows, kFour, D, T, X, V, Y, Start>
                              : &mix_rows<kHow, kRows, 0, D, T, X, V, Y, Start>;
      run(d, begin, end, row, m, channels, a, x, outer, start, y);
    });
  });
}

/// y_i = sum_j a_ij x_j + outer.rows_i outer.vector (+ y_i when `accumulate`).
template <bool accumulate = false, class X, class Y>
void mix(std::int64_t n, std::int64_t m, std::int64_t channels, Coefficients<Compute<X>> a, const X* x,
         Outer<Compute<X>, X> outer, Y* y) {
  if constexpr (accumulate)
    mix_from<Store::cached>(from_rows(y, channels), n, m, channels, a, x, outer, y);
  else
    mix_from<Store::cached>(kFromZero, n, m, channels, a, x, outer, y);
}

/// mix_from() with a y that may be stored by non-temporal stores.
template <class X, class Y, class Start, class V = X>
void mix_to(Store where, Start start, std::int64_t n, std::int64_t m, std::int64_t channels, Coefficients<Compute<X>> a,
            const X* x, Outer<Compute<X>, V> outer, Y* y) {
  const auto run = where == Store::cached ? &mix_from<Store::cached, X, Y, Start, V>
                                          : &mix_from<Store::non_temporal, X, Y, Start, V>;
  run(start, n, m, channels, a, x, outer, y);
}

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

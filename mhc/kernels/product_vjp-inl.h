// Both matrix products of the maps' vjp, from one pass over x while it is in cache: lanes along the width of the
// streams, so that no lane is wasted on the n (n + 2) columns of phi. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_
#undef BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_
#else
#define BRAID_MHC_KERNELS_PRODUCT_VJP_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <braid/core/kernels/round_up.h>
#include <braid/core/parallel.h>
#include <braid/mhc/kernels/channels-inl.h>
#include <braid/mhc/kernels/prefetch-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

/// A tall matrix [rows, columns] cut into panels of 16 rows, each of them transposed: vectors lie along the rows, and
/// those of all columns lie together. Rows that the last panel lacks are not set.
constexpr std::int64_t kPanel = 16;

/// Elements that the panels take.
inline std::int64_t panels_size(std::int64_t rows, std::int64_t columns) {
  return braid::kernels::round_up(rows, kPanel) * columns;
}

/// Calls f(index in the panels, index in the matrix) for every element, on all threads.
template <class F>
void for_panels(std::int64_t rows, std::int64_t columns, F&& f) {
  parallel_for(braid::kernels::divide_up(rows, kPanel), 32, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first * kPanel; row < std::min(rows, last * kPanel); ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        f((row / kPanel * columns + column) * kPanel + row % kPanel, row * columns + column);
  });
}

template <class T>
void pack_panels(std::int64_t rows, std::int64_t columns, const T* matrix, T* panels) {
  for_panels(rows, columns, [=](std::int64_t packed, std::int64_t i) { panels[packed] = matrix[i]; });
}

template <class T>
void unpack_panels(std::int64_t rows, std::int64_t columns, const T* panels, T* matrix) {
  for_panels(rows, columns, [=](std::int64_t packed, std::int64_t i) { matrix[i] = panels[packed]; });
}

/// The most tokens of one call.
constexpr std::int64_t kMostTokens = 32;

/// z = x phi of some tokens, backwards: dphi += x^T dz and products = dz phi^T.
template <class S, class T = Compute<S>>
struct ProductVjp {
  std::int64_t tokens, width, m;
  const S* x;          // [tokens, width]
  const T* dz;         // [tokens, m]
  const T* phi;        // panels of [width, m]
  T *dphi, *products;  // panels of [width, m]; [tokens, width] with rows product_step apart
  std::int64_t product_step;
};

/// How many vectors a panel's worth of one row of a matrix takes, and how many such rows stay in registers.
template <class D>
inline constexpr int kPanelVectors = kPanel / static_cast<int>(hn::MaxLanes(D()));
template <class D>
inline constexpr int kPanelRows = std::max(1, (HWY_MAX_BYTES >= 64 ? 24 : 12) / kPanelVectors<D>);

/// kRows rows of to [rows, kPanel], a row `to_step` apart: to += sum_t a_(t, row) b_t, where a_(t, row) lies at
/// t a_step + row a_row and b_t [kPanel] at b + t kPanel.
template <bool accumulate, int kRows, class D, class T>
HWY_INLINE void multiply_panel_rows(D d, std::int64_t terms, const T* a, std::int64_t a_step, std::int64_t a_row,
                                    const T* b, T* to, std::int64_t to_step) {
  constexpr int kVectors = kPanelVectors<D>, kLanes = static_cast<int>(hn::MaxLanes(d));
  hn::Vec<D> sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kVectors; ++k)
      sum[r][k] = accumulate ? hn::LoadU(d, to + r * to_step + k * kLanes) : hn::Zero(d);
  for (std::int64_t t = 0; t < terms; ++t) {
    hn::Vec<D> right[kVectors];
    for (int k = 0; k < kVectors; ++k) right[k] = hn::LoadU(d, b + t * kPanel + k * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const auto left = hn::Set(d, a[t * a_step + r * a_row]);
      for (int k = 0; k < kVectors; ++k) sum[r][k] = hn::MulAdd(left, right[k], sum[r][k]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kVectors; ++k) hn::StoreU(sum[r][k], d, to + r * to_step + k * kLanes);
}

/// All `rows` of it.
template <bool accumulate, class D, class T>
void multiply_panel(D d, std::int64_t rows, std::int64_t terms, const T* a, std::int64_t a_step, std::int64_t a_row,
                    const T* b, T* to, std::int64_t to_step) {
  constexpr int kRows = kPanelRows<D>;
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows)
    multiply_panel_rows<accumulate, kRows>(d, terms, a + row * a_row, a_step, a_row, b, to + row * to_step, to_step);
  const auto multiply = [&](auto group, std::int64_t i) {
    multiply_panel_rows<accumulate, decltype(group)::value>(d, terms, a + i * a_row, a_step, a_row, b, to + i * to_step,
                                                            to_step);
  };
  by_groups<4, true>(rows, multiply, row);
}

/// Both products of a tile while the next is prefetched. Rows of x lie a power of two apart, where a first-level cache
/// has room for eight, so the part that a panel needs is copied first.
template <class S, class T = Compute<S>>
void product_vjp(const ProductVjp<S>& v, Prefetcher prefetcher) {
  const hn::CappedTag<T, kPanel> d;
  HWY_ALIGN T columns[kMostTokens * kPanel];
  for (std::int64_t p = 0; p < v.width; p += kPanel) {
    const bool whole = p + kPanel <= v.width;
    const std::int64_t size = whole ? kPanel : v.width - p;
    for (std::int64_t t = 0; t < v.tokens; ++t) {
      const S* from = v.x + t * v.width + p;
      T* to = columns + t * kPanel;
      if (whole)
        for (std::int64_t i = 0; i < kPanel; i += static_cast<std::int64_t>(hn::Lanes(d)))
          hn::Store(load(d, from + i), d, to + i);
      else
        std::fill(std::copy_n(from, size, to), to + kPanel, T{0});
      prefetcher.next(kPanel);
    }
    multiply_panel<true>(d, v.m, v.tokens, v.dz, v.m, 1, columns, v.dphi + p * v.m, kPanel);
    multiply_panel<false>(d, v.tokens, v.m, v.dz, 1, v.m, v.phi + p * v.m, whole ? v.products + p : columns,
                          whole ? v.product_step : kPanel);
    for (std::int64_t t = 0; !whole && t < v.tokens; ++t)
      std::copy_n(columns + t * kPanel, size, v.products + t * v.product_step + p);
  }
}

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

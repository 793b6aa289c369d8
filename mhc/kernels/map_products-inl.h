// The matrix products of the maps, which have a few columns, those of one token's maps. General matrix products compute
// them at a third to a half of the speed. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_MAP_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_MAP_PRODUCTS_INL_H_
#undef BRAID_MHC_KERNELS_MAP_PRODUCTS_INL_H_
#else
#define BRAID_MHC_KERNELS_MAP_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <braid/core/kernels/round_up.h>
#include <braid/core/parallel.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/kernels/packed_product.h>
#include <braid/mhc/kernels/channels-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

using braid::kernels::kDepth;
using braid::kernels::HWY_NAMESPACE::Part;
using braid::kernels::HWY_NAMESPACE::Whole;

/// c = a b; a [rows, depth], b [depth, columns], c [rows, columns].
template <class T>
struct ThinProduct {
  std::int64_t rows, depth, columns;
  const T *a, *b;
  T* c;
};

/// kRows rows of it, from `row` on, of kVectors vectors, whose sums stay in registers (with HWY_UNROLL by GCC, too): in
/// the order of the packed product, so that the bits depend neither on the instruction set nor on the other rows.
template <int kRows, int kVectors, class T>
HWY_INLINE void multiply_rows(const ThinProduct<T>& p, std::int64_t row, Prefetcher& prefetcher) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d)), kSteps = 4;
  const std::int64_t depth = p.depth, columns = p.columns;
  const T *a = p.a + row * depth, *b = p.b;
  const Part last{static_cast<std::size_t>(columns - (kVectors - 1) * kLanes)};
  std::int64_t i = 0;
  do {
    const std::int64_t end = std::min(depth, i + kDepth<T>);
    const bool add = i > 0;
    V sum[kRows][kVectors];
    for (auto& sums : sum)
      for (V& s : sums) s = hn::Zero(d);
    const auto add_term = [&](std::int64_t at, auto part) HWY_ATTR {
      V right[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        const T* from = b + at * columns + v * kLanes;
        right[v] = v + 1 < kVectors ? hn::LoadU(d, from) : part.load(d, from);
      }
      for (int r = 0; r < kRows; ++r) {
        const V left = hn::Set(d, a[r * depth + at]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
      }
    };
    // The last vector of a row of b may hold elements of the next row, in lanes that are not stored; nothing past
    // the end of b is read.
    for (; i + kSteps <= end && (depth - i - kSteps + 1) * columns >= kVectors * kLanes; i += kSteps) {
      for (int step = 0; step < kSteps; ++step) add_term(i + step, Whole{});
      prefetcher.next(kSteps * kRows);
    }
    for (; i < end; ++i) add_term(i, last);
    const auto write = [&](auto part, V v, T* to)
                           HWY_ATTR { part.store(add ? hn::Add(part.load(d, to), v) : v, d, to); };
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      T* to = p.c + (row + r) * columns;
      for (int v = 0; v + 1 < kVectors; ++v) write(Whole{}, sum[r][v], to + v * kLanes);
      write(last, sum[r][kVectors - 1], to + (kVectors - 1) * kLanes);
    }
  } while (i < depth);
}

/// As many rows at a time as the registers hold.
template <int kVectors, class T>
void multiply_thin_n(const ThinProduct<T>& p, Prefetcher prefetcher) {
  constexpr int kRows = std::min(8, (HWY_MAX_BYTES >= 64 ? 24 : 12) / kVectors);
  std::int64_t i = 0;
  for (; i + kRows <= p.rows; i += kRows) multiply_rows<kRows, kVectors>(p, i, prefetcher);
  for (; i < p.rows; ++i) multiply_rows<1, kVectors>(p, i, prefetcher);
}

/// The product, while the prefetcher loads its range into the cache.
template <class T>
void multiply_thin(const ThinProduct<T>& p, Prefetcher prefetcher) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
  // Without vectors it gains nothing, and doubles, which verify, need no speed for what is long to compile.
  if constexpr (kLanes > 1 && sizeof(T) == 4) {
    switch ((p.columns + kLanes - 1) / kLanes) {
      case 1: return multiply_thin_n<1>(p, prefetcher);
      case 2: return multiply_thin_n<2>(p, prefetcher);
      case 3: return multiply_thin_n<3>(p, prefetcher);
      case 4: return multiply_thin_n<4>(p, prefetcher);
      case 5: return multiply_thin_n<5>(p, prefetcher);
      case 6: return multiply_thin_n<6>(p, prefetcher);
    }
  }
  gemm_serial<T>(
      {.m = p.rows, .n = p.columns, .k = p.depth, .a = {p.a, p.depth}, .b = {p.b, p.columns}, .c = {p.c, p.columns}});
}

// Both products of the vjp, from one pass over x while it is in cache: lanes along the width of the streams, so that no
// lane is wasted on the n (n + 2) columns of phi.

/// A tall matrix [rows, columns] cut into panels of 16 rows, each of them transposed: vectors lie along the rows, and
/// those of all columns lie together. Rows that the last panel lacks are not set.
constexpr std::int64_t kPanel = 16;

/// Elements that the panels take.
inline std::int64_t panels_size(std::int64_t rows, std::int64_t columns) {
  return braid::kernels::round_up(rows, kPanel) * columns;
}

/// Calls f(index in the panels, index in the matrix) for every element, on all threads.
void for_panels(std::int64_t rows, std::int64_t columns, auto&& f) {
  parallel_for(braid::kernels::divide_up(rows, kPanel), 32, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first * kPanel; row < std::min(rows, last * kPanel); ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        f((row / kPanel * columns + column) * kPanel + row % kPanel, row * columns + column);
  });
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
/// t a_step + row a_row and b_t [kPanel] at b + t kPanel. Without HWY_UNROLL, GCC stores all sums in every step.
template <bool accumulate, int kRows, class D, class T>
HWY_INLINE void multiply_panel_rows(D d, std::int64_t terms, const T* a, std::int64_t a_step, std::int64_t a_row,
                                    const T* b, T* to, std::int64_t to_step) {
  constexpr int kVectors = kPanelVectors<D>, kLanes = static_cast<int>(hn::MaxLanes(d));
  hn::Vec<D> sum[kRows][kVectors];
  HWY_UNROLL(32)
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kVectors; ++k)
      sum[r][k] = accumulate ? hn::LoadU(d, to + r * to_step + k * kLanes) : hn::Zero(d);
  for (std::int64_t t = 0; t < terms; ++t) {
    hn::Vec<D> right[kVectors];
    for (int k = 0; k < kVectors; ++k) right[k] = hn::LoadU(d, b + t * kPanel + k * kLanes);
    HWY_UNROLL(32)
    for (int r = 0; r < kRows; ++r) {
      const auto left = hn::Set(d, a[t * a_step + r * a_row]);
      for (int k = 0; k < kVectors; ++k) sum[r][k] = hn::MulAdd(left, right[k], sum[r][k]);
    }
  }
  HWY_UNROLL(32)
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

// Matrix products with a few columns, those of one token's maps, which general matrix products compute at a third to a
// half of their speed. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_
#undef BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_
#else
#define BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

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

/// kRows rows of it, from `row` on, of kVectors vectors, whose sums stay in registers: in the order of the packed
/// product, so that the bits depend neither on the instruction set nor on the other rows.
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

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

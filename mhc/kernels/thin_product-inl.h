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

#include <braid/core/batch_invariant.h>
#include <braid/core/kernels/vector-inl.h>
#include <braid/core/products/gemm.h>
#include <braid/mhc/kernels/prefetch-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using braid::kernels::HWY_NAMESPACE::Part;
using braid::kernels::HWY_NAMESPACE::Whole;

/// c = a b; a [rows, depth], b [depth, columns], c [rows, columns].
template <class T>
struct ThinProduct {
  std::int64_t rows, depth, columns;
  const T *a, *b;
  T* c;
};

/// kRows rows of it, from `row` on, of kVectors vectors. All sums stay in registers: kParts of every one, over every
/// kParts-th term, so that a few rows need not wait for one multiply-add after the other.
template <int kRows, int kParts, int kVectors, class T>
HWY_INLINE void multiply_rows(const ThinProduct<T>& p, std::int64_t row, Prefetcher& prefetcher) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d));
  const std::int64_t depth = p.depth, columns = p.columns;
  const T *a = p.a + row * depth, *b = p.b;
  V sum[kParts][kRows][kVectors];
  for (auto& part : sum)
    for (auto& sums : part)
      for (V& s : sums) s = hn::Zero(d);
  const auto add_term = [&](std::int64_t i, int part, auto last) HWY_ATTR {
    V right[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const T* from = b + i * columns + v * kLanes;
      right[v] = v + 1 < kVectors ? hn::LoadU(d, from) : last.load(d, from);
    }
    for (int r = 0; r < kRows; ++r) {
      const V left = hn::Set(d, a[r * depth + i]);
      for (int v = 0; v < kVectors; ++v) sum[part][r][v] = hn::MulAdd(left, right[v], sum[part][r][v]);
    }
  };
  constexpr int kSteps = 4;
  std::int64_t i = 0;
  // The last vector of a row of b may hold elements of the next row, in lanes that are not stored; nothing past
  // the end of b is read.
  for (; (depth - i - kSteps + 1) * columns >= kVectors * kLanes; i += kSteps) {
    for (int step = 0; step < kSteps; ++step) add_term(i + step, step % kParts, Whole{});
    prefetcher.next(kSteps * kRows);
  }
  const Part last{static_cast<std::size_t>(columns - (kVectors - 1) * kLanes)};
  for (; i + kSteps <= depth; i += kSteps)
    for (int step = 0; step < kSteps; ++step) add_term(i + step, step % kParts, last);
  for (; i < depth; ++i) add_term(i, 0, last);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      V total = sum[0][r][v];
      for (int part = 1; part < kParts; ++part) total = hn::Add(total, sum[part][r][v]);
      T* to = p.c + (row + r) * columns + v * kLanes;
      if (v + 1 < kVectors)
        hn::StoreU(total, d, to);
      else
        last.store(total, d, to);
    }
}

/// As many rows at a time as the registers hold.
template <int kVectors, class T>
void multiply_thin_n(const ThinProduct<T>& p, Prefetcher prefetcher) {
  constexpr int kRows = std::min(8, (HWY_MAX_BYTES >= 64 ? 24 : 12) / kVectors);
  const std::int64_t together = BatchInvariant::active() ? 0 : p.rows;  // sums of one row are not those of several
  std::int64_t i = 0;
  for (; i + kRows <= together; i += kRows) multiply_rows<kRows, 1, kVectors>(p, i, prefetcher);
  for (; i < p.rows; ++i) multiply_rows<1, kVectors <= 3 ? 4 : 2, kVectors>(p, i, prefetcher);
}

/// The product, while the prefetcher loads its range into the cache.
template <class T>
void multiply_thin(const ThinProduct<T>& p, Prefetcher prefetcher) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
  if constexpr (kLanes > 1) {  // without vectors it gains nothing, and takes long to compile
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

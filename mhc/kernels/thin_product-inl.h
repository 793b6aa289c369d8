// Matrix products with a few columns, those of one token's maps, which general matrix products handle at a third to a
// half of their speed. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_
#undef BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_
#else
#define BRAID_MHC_KERNELS_THIN_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>

#include <braid/mhc/kernels/prefetch-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// kRows rows of c = a b; a [rows, depth], b [depth, kColumns], c [rows, kColumns]. All sums stay in registers: kParts
/// of every one, over every kParts-th term, so that a few rows need not wait for one multiply-add after the other.
template <int kRows, int kParts, int kColumns, class T>
HWY_INLINE void multiply_rows(int64_t depth, const T* a, const T* b, T* c, Prefetcher<T>& prefetcher) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d)), kVectors = (kColumns + kLanes - 1) / kLanes;
  const auto last = hn::FirstN(d, kColumns - (kVectors - 1) * kLanes);  // lanes of the last vector that are columns
  V sum[kParts][kRows][kVectors];
  for (auto& part : sum)
    for (auto& row : part)
      for (V& s : row) s = hn::Zero(d);
  const auto add_term = [&](int64_t p, int part) {
    V right[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const T* row = b + p * kColumns + v * kLanes;
      right[v] = v + 1 < kVectors ? hn::LoadU(d, row) : hn::MaskedLoad(last, d, row);
    }
    for (int r = 0; r < kRows; ++r) {
      const V left = hn::Set(d, a[r * depth + p]);
      for (int v = 0; v < kVectors; ++v) sum[part][r][v] = hn::MulAdd(left, right[v], sum[part][r][v]);
    }
  };
  constexpr int kSteps = 4, kLines = std::max(1, kSteps * kRows * static_cast<int>(sizeof(T)) / 64);
  int64_t p = 0;
  for (; p + kSteps <= depth; p += kSteps) {
    for (int step = 0; step < kSteps; ++step) add_term(p + step, step % kParts);
    for (int line = 0; line < kLines; ++line) prefetcher.next_line();
  }
  for (; p < depth; ++p) add_term(p, 0);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      V total = sum[0][r][v];
      for (int part = 1; part < kParts; ++part) total = hn::Add(total, sum[part][r][v]);
      T* row = c + r * kColumns + v * kLanes;
      if (v + 1 < kVectors)
        hn::StoreU(total, d, row);
      else
        hn::BlendedStore(total, last, d, row);
    }
}

/// c = a b, as many rows at a time as the registers hold.
template <int kColumns, class T>
void multiply_thin(int64_t rows, int64_t depth, const T* a, const T* b, T* c, Prefetcher<T> prefetcher) {
  constexpr int kRows = HWY_MAX_BYTES >= 64 ? 8 : 4;
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    multiply_rows<kRows, 1, kColumns>(depth, a + i * depth, b, c + i * kColumns, prefetcher);
  for (; i < rows; ++i) multiply_rows<1, 4, kColumns>(depth, a + i * depth, b, c + i * kColumns, prefetcher);
}

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

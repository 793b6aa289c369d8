// Matrix products with a few columns, those of one token's maps, which general matrix products handle at a third to a
// half of their speed. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_THIN_INL_H_
#undef BRAID_MHC_KERNELS_THIN_INL_H_
#else
#define BRAID_MHC_KERNELS_THIN_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A matrix [rows, depth] by its steps.
template <class T>
struct Factor {
  const T* data;
  int64_t row_step, depth_step;

  const T* row(int64_t i) const { return data + i * row_step; }
};

/// kRows rows of c = a b, or c += a b; b [depth, kColumns], c [rows, kColumns]. All sums stay in registers: kParts of
/// every one, over every kParts-th term, so that a few rows need not wait for one multiply-add after the other.
template <int kRows, int kParts, int kColumns, class T>
HWY_INLINE void multiply_rows(int64_t depth, Factor<T> a, const T* b, bool accumulate, T* c) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d)), kVectors = (kColumns + kLanes - 1) / kLanes;
  const auto last = hn::FirstN(d, kColumns - (kVectors - 1) * kLanes);  // lanes of the last vector that are columns
  const auto load = [&](const T* row, int v) {
    return v + 1 < kVectors ? hn::LoadU(d, row + v * kLanes) : hn::MaskedLoad(last, d, row + v * kLanes);
  };
  V sum[kParts][kRows][kVectors];
  for (auto& part : sum)
    for (auto& row : part)
      for (V& s : row) s = hn::Zero(d);
  const auto add_term = [&](int64_t p, int part) {
    V right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + p * kColumns, v);
    for (int r = 0; r < kRows; ++r) {
      const V left = hn::Set(d, a.row(r)[p * a.depth_step]);
      for (int v = 0; v < kVectors; ++v) sum[part][r][v] = hn::MulAdd(left, right[v], sum[part][r][v]);
    }
  };
  int64_t p = 0;
  for (; p + kParts <= depth; p += kParts)
    for (int part = 0; part < kParts; ++part) add_term(p + part, part);
  for (; p < depth; ++p) add_term(p, 0);
  for (int r = 0; r < kRows; ++r) {
    T* row = c + r * kColumns;
    for (int v = 0; v < kVectors; ++v) {
      V total = accumulate ? hn::Add(load(row, v), sum[0][r][v]) : sum[0][r][v];
      for (int part = 1; part < kParts; ++part) total = hn::Add(total, sum[part][r][v]);
      if (v + 1 < kVectors)
        hn::StoreU(total, d, row + v * kLanes);
      else
        hn::BlendedStore(total, last, d, row + v * kLanes);
    }
  }
}

/// c = a b, or c += a b. As many rows at a time as the registers hold.
template <int kColumns, class T>
void multiply_thin(int64_t rows, int64_t depth, Factor<T> a, const T* b, bool accumulate, T* c) {
  constexpr int kRows = HWY_MAX_BYTES >= 64 ? 8 : 4;
  const auto from = [&](int64_t i) { return Factor<T>{a.row(i), a.row_step, a.depth_step}; };
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    multiply_rows<kRows, 1, kColumns>(depth, from(i), b, accumulate, c + i * kColumns);
  for (; i < rows; ++i) multiply_rows<1, 4, kColumns>(depth, from(i), b, accumulate, c + i * kColumns);
}

}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

// Products of small matrices in the first-level cache, register tile by register tile. Compiled per SIMD target.
#if defined(BRAID_CORE_KERNELS_BLOCK_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_CORE_KERNELS_BLOCK_PRODUCT_INL_H_
#undef BRAID_CORE_KERNELS_BLOCK_PRODUCT_INL_H_
#else
#define BRAID_CORE_KERNELS_BLOCK_PRODUCT_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include <braid/core/kernels/round_up.h>
#include <braid/core/kernels/transpose-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

// AVX-512 and NEON have 32 registers, other targets 16.
inline constexpr bool kManyRegisters = HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3);
// 4 x 2 sums hide the latency of two multiply-adds a cycle and, with 2 vectors of b and one of a, fit the registers.
inline constexpr std::int64_t kTileRows = kManyRegisters ? 8 : 4;
inline constexpr int kTileVectors = 2;

/// A matrix read one element at a time: element (i, p) at data[i * row_step + p * column_step].
template <class T>
struct Scalars {
  const T* data;
  std::int64_t row_step, column_step;
};

/// A row-major matrix read or written in whole vectors.
template <class T>
struct Panel {
  T* data;
  std::int64_t row_step;

  Panel from(std::int64_t row) const { return {data + row * row_step, row_step}; }
  Scalars<std::remove_const_t<T>> scalars() const { return {data, row_step, 1}; }
};

/// sums [kRows, kVectors] += a [kRows, depth] b [depth, kVectors]; with floats, b may hold bfloat16.
template <std::int64_t kRows, int kVectors, class T, class B = T, class V>
HWY_INLINE void add_tile(std::int64_t depth, Scalars<T> a, Panel<const B> b, V (&sums)[kRows][kVectors]) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d);
  const T* pa = a.data;
  const B* pb = b.data;
  for (std::int64_t p = 0; p < depth; ++p, pa += a.column_step, pb += b.row_step) {
    V row[kVectors];
    for (int j = 0; j < kVectors; ++j) row[j] = Whole{}.load(d, pb + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const V factor = hn::Set(d, pa[i * a.row_step]);
      for (int j = 0; j < kVectors; ++j) sums[i][j] = hn::MulAdd(factor, row[j], sums[i][j]);
    }
  }
}

/// c [kRows, kVectors] = a [kRows, depth] b [depth, kVectors], added to what c holds if `add`. Without HWY_UNROLL, GCC
/// stores all sums in every step on NEON.
template <std::int64_t kRows, int kVectors, class T, class B = T>
HWY_INLINE void multiply_tile(std::int64_t depth, Scalars<T> a, Panel<const B> b, Panel<T> c, bool add) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kRows][kVectors];
  HWY_UNROLL(16)
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j)
      sums[i][j] = add ? hn::Load(d, c.data + i * c.row_step + j * lanes) : hn::Zero(d);
  add_tile<kRows, kVectors, T, B>(depth, a, b, sums);
  HWY_UNROLL(16)
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kVectors; ++j) hn::Store(sums[i][j], d, c.data + i * c.row_step + j * lanes);
}

/// c [kRows, columns] = a [kRows, depth] b [depth, columns] (+ c if `add`); columns fill whole vectors.
template <class T, std::int64_t kRows = kTileRows, int kMost = kTileVectors>
HWY_INLINE void multiply_rows(std::int64_t columns, std::int64_t depth, Scalars<T> a, Panel<const T> b, Panel<T> c,
                              bool add) {
  const std::int64_t lanes = hn::Lanes(hn::ScalableTag<T>());
  std::int64_t j = 0;
  const auto next = [&]<int kVectors>() HWY_ATTR {
    multiply_tile<kRows, kVectors>(depth, a, {b.data + j, b.row_step}, {c.data + j, c.row_step}, add);
    j += kVectors * lanes;
  };
  while (j + kMost * lanes <= columns) next.template operator()<kMost>();
  if constexpr (kMost > 2)
    if (j + 2 * lanes <= columns) next.template operator()<2>();
  if (j < columns) next.template operator()<1>();
}

/// c [kRows, lanes] = a [kRows, depth] times the transpose of b [lanes, depth], with the bits of multiply_tile for the
/// packed transpose.
template <std::int64_t kRows, class T, class B = T>
HWY_INLINE void multiply_transposed(std::int64_t depth, Scalars<T> a, Panel<const B> b, Panel<T> c) {
  constexpr std::int64_t kSide = kSquare<B>, kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  constexpr std::int64_t kLine = 64 / sizeof(B);
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V sums[kRows], columns[kSide];
  for (V& sum : sums) sum = hn::Zero(d);
  const auto add = [&](std::int64_t p, V column) HWY_ATTR {
    for (std::int64_t i = 0; i < kRows; ++i)
      sums[i] = hn::MulAdd(hn::Set(d, a.data[i * a.row_step + p * a.column_step]), column, sums[i]);
  };
  // Rows a multiple of 4 KiB apart drive each other's lines out of the first-level cache, unless they are copied first.
  const bool copies = kSide < kLine && b.row_step * sizeof(B) % 4096 == 0 && depth % kLine == 0;
  const std::int64_t step = copies ? kLine : b.row_step;
  HWY_ALIGN B lines[kLanes][kLine];
  std::int64_t p = 0;
  for (; p + kSide <= depth; p += kSide) {
    if (p % kLine == 0)  // a line of each row that comes next, into the second-level cache, which can await more
      for (std::int64_t j = kLanes; j < 2 * kLanes; ++j) __builtin_prefetch(b.from(j).data + p, 0, 2);
    if (copies && p % kLine == 0)
      for (std::int64_t j = 0; j < kLanes; ++j) std::memcpy(lines[j], b.from(j).data + p, 64);
    load_columns(d, copies ? lines[0] + p % kLine : b.data + p, step, columns);
    for (std::int64_t i = 0; i < kSide; ++i) add(p + i, columns[i]);
  }
  for (; p < depth; ++p) {
    HWY_ALIGN T column[kLanes];
    for (std::int64_t j = 0; j < kLanes; ++j) column[j] = b.data[j * b.row_step + p];
    add(p, hn::Load(d, column));
  }
  for (std::int64_t i = 0; i < kRows; ++i) hn::Store(sums[i], d, c.data + i * c.row_step);
}

/// The same bits for the first `rows`, at most half a tile, in less time: more vectors of each hide the latency.
template <class T>
HWY_NOINLINE void multiply_few_rows(std::int64_t rows, std::int64_t columns, std::int64_t depth, Scalars<T> a,
                                    Panel<const T> b, Panel<T> c, bool add) {
  if (rows > 2) return multiply_rows<T, 4, 4>(columns, depth, a, b, c, add);
  if (rows > 1) return multiply_rows<T, 2, 4>(columns, depth, a, b, c, add);
  multiply_rows<T, 1, 4>(columns, depth, a, b, c, add);
}

/// multiply_transposed for whole vectors of columns of c.
template <class T>
HWY_NOINLINE void multiply_few_rows_transposed(std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                               Scalars<T> a, Panel<const T> b, Panel<T> c) {
  const auto with = [&]<std::int64_t kRows>() HWY_ATTR {
    const std::int64_t lanes = hn::Lanes(hn::ScalableTag<T>());
    for (std::int64_t j = 0; j < columns; j += lanes)
      multiply_transposed<kRows>(depth, a, {b.data + j * b.row_step, b.row_step}, {c.data + j, c.row_step});
  };
  if (rows > 2) return with.template operator()<4>();
  if (rows > 1) return with.template operator()<2>();
  with.template operator()<1>();
}

/// Computes at least the first `rows` rows of a tile.
template <class T>
HWY_INLINE void multiply_some_rows(std::int64_t rows, std::int64_t columns, std::int64_t depth, Scalars<T> a,
                                   Panel<const T> b, Panel<T> c, bool add) {
  if (rows > kTileRows / 2) return multiply_rows<T>(columns, depth, a, b, c, add);
  multiply_few_rows<T>(rows, columns, depth, a, b, c, add);
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// Copies between strided rows and the contiguous blocks that block_product-inl.h multiplies. They pad with zeros to
// whole tiles, so that tails of vectors are handled here and nowhere else. Compiled once for each SIMD target.
#if defined(BRAID_AUTOGRAD_KERNELS_PACKING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_AUTOGRAD_KERNELS_PACKING_INL_H_
#undef BRAID_AUTOGRAD_KERNELS_PACKING_INL_H_
#else
#define BRAID_AUTOGRAD_KERNELS_PACKING_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <braid/autograd/kernels/block_product-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

/// Columns of a panel of transposed rows.
inline constexpr std::int64_t kPanel = 64;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Hands out consecutive pieces of the scratch memory, aligned for any vector.
template <class T>
struct Arena {
  T* next;

  T* take(std::int64_t n) {
    T* piece = next;
    next += round_up(n, 16);
    return piece;
  }
};

/// to [round_up(rows, tile), width] = factor * from [rows, depth], zeros around.
template <class T>
void pack_rows(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t depth, T factor, T* to,
               std::int64_t width) {
  const hn::ScalableTag<T> d;
  const auto scale = hn::Set(d, factor);
  for (std::int64_t i = 0; i < rows; ++i)
    for_each_vector(d, depth, [&](std::int64_t j, auto part) HWY_ATTR {
      hn::Store(hn::Mul(part.load(d, from + i * stride + j), scale), d, to + i * width + j);
    });
  std::fill(to + rows * width, to + round_up(rows, kTileRows) * width, T{0});
}

#if HWY_TARGET != HWY_SCALAR
/// Transposes 4 rows of 4 elements; the rows of `to` are kPanel apart.
HWY_INLINE void transpose_square(const float* from, std::int64_t stride, float* to) {
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + stride);
  const auto c = hn::LoadU(d, from + 2 * stride), e = hn::LoadU(d, from + 3 * stride);
  const auto ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);  // a0 b0 a1 b1, a2 b2 a3 b3
  const auto ce_low = hn::InterleaveLower(d, c, e), ce_high = hn::InterleaveUpper(d, c, e);
  hn::Store(hn::ConcatLowerLower(d, ce_low, ab_low), d, to);
  hn::Store(hn::ConcatUpperUpper(d, ce_low, ab_low), d, to + kPanel);
  hn::Store(hn::ConcatLowerLower(d, ce_high, ab_high), d, to + 2 * kPanel);
  hn::Store(hn::ConcatUpperUpper(d, ce_high, ab_high), d, to + 3 * kPanel);
}
#endif

/// The same for any type, element by element.
template <class T>
void transpose_square(const T* from, std::int64_t stride, T* to) {
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j) to[j * kPanel + i] = from[i * stride + j];
}

/// to [depth, kPanel] = the transpose of from [rows, depth], zeros behind.
template <class T>
void pack_columns(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t depth, T* to) {
  const std::int64_t square_rows = rows / 4 * 4, square_columns = depth / 4 * 4;
  for (std::int64_t j = 0; j < square_columns; j += 4)
    for (std::int64_t i = 0; i < square_rows; i += 4)
      transpose_square(from + i * stride + j, stride, to + j * kPanel + i);
  for (std::int64_t j = 0; j < depth; ++j) {
    for (std::int64_t i = j < square_columns ? square_rows : 0; i < rows; ++i)
      to[j * kPanel + i] = from[i * stride + j];
    std::fill(to + j * kPanel + rows, to + (j + 1) * kPanel, T{0});
  }
}

/// to [rows, depth] = factor(row) * from [rows, width]
template <class T, class Factor>
void unpack_rows(const T* from, std::int64_t width, std::int64_t rows, std::int64_t depth, Factor factor, T* to,
                 std::int64_t stride) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto scale = hn::Set(d, factor(i));
    for_each_vector(d, depth, [&](std::int64_t j, auto part) HWY_ATTR {
      part.store(hn::Mul(hn::Load(d, from + i * width + j), scale), d, to + i * stride + j);
    });
  }
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

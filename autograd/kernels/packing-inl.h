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

#include <braid/core/kernels/transpose-inl.h>
#include <braid/core/kernels/vector-inl.h>
#include <braid/core/products/kernels/block_product-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

/// Columns of a panel of transposed rows.
inline constexpr std::int64_t kPanel = 64;

/// Hands out consecutive pieces of scratch memory, aligned for any vector. One on null only counts.
template <class T>
struct Arena {
  T* memory;
  std::int64_t taken = 0;

  bool counts() const { return memory == nullptr; }
  T* take(std::int64_t n) {
    T* const piece = counts() ? nullptr : memory + taken;
    taken += round_up(n, 16);
    return piece;
  }
};

/// Rows of `depth` elements: `group` of them side by side at each position, positions `stride` apart.
template <class T>
struct GroupedRows {
  T* data;
  std::int64_t depth, group, stride;

  T* operator[](std::int64_t row) const {
    if (group == 1) return data + row * stride;  // divisions are slow
    return data + row / group * stride + row % group * depth;
  }
};

/// to [round_up(rows, tile), width] = factor * rows [first, first + rows) of from, zeros around.
template <class S, class T>
void pack_rows(GroupedRows<const S> from, std::int64_t first, std::int64_t rows, T factor, T* to, std::int64_t width) {
  const hn::ScalableTag<T> d;
  const auto scale = hn::Set(d, factor);
  for (std::int64_t i = 0; i < rows; ++i) {
    const S* row = from[first + i];
    for_each_vector(d, from.depth, [&](std::int64_t j, auto part) HWY_ATTR {
      hn::Store(hn::Mul(part.load(d, row + j), scale), d, to + i * width + j);
    });
  }
  std::fill(to + rows * width, to + round_up(rows, kTileRows) * width, T{0});
}

/// A square of columns of rows that lie `step` apart, one element of each row.
HWY_INLINE void load_columns(hn::ScalableTag<float> d, const bfloat16* from, std::int64_t step,
                             hn::Vec<hn::ScalableTag<float>>* to) {
  constexpr std::int64_t kSide = kSquare<float>, kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  const hn::CappedTag<float, kSide> quarter;
  HWY_ALIGN float wide[kLanes * kSide];
  for (std::int64_t i = 0; i < kLanes; ++i)
    hn::Store(Whole{}.load(quarter, from + i * step), quarter, wide + i * kSide);
  load_columns(d, wide, kSide, to);
}

/// to [depth, kPanel] = factor * the transpose of from [rows, depth], zeros after them.
template <class S, class T>
void pack_columns(const S* from, std::int64_t stride, std::int64_t rows, std::int64_t depth, T factor, T* to) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kSide = kSquare<T>, kLanes = hn::MaxLanes(d);
  const auto scale = hn::Set(d, factor);
  const std::int64_t whole_columns = rows < kLanes ? 0 : depth / kSide * kSide;
  for (std::int64_t i = 0; i < rows; i += kLanes)
    for (std::int64_t j = 0; j < whole_columns; j += kSide) {
      const std::int64_t first = std::min(i, rows - kLanes);  // the last vector may overlap the one before
      hn::Vec<decltype(d)> columns[kSide];
      load_columns(d, from + first * stride + j, stride, columns);
      for (std::int64_t c = 0; c < kSide; ++c) hn::StoreU(hn::Mul(scale, columns[c]), d, to + (j + c) * kPanel + first);
    }
  for (std::int64_t j = 0; j < depth; ++j) {
    for (std::int64_t i = 0; j >= whole_columns && i < rows; ++i)
      to[j * kPanel + i] = factor * static_cast<T>(from[i * stride + j]);
    std::fill(to + j * kPanel + rows, to + (j + 1) * kPanel, T{0});
  }
}

/// Rows [first, first + rows) of to = factor(row) * from [rows, width]
template <class S, class T, class Factor>
void unpack_rows(const T* from, std::int64_t width, Factor factor, GroupedRows<S> to, std::int64_t first,
                 std::int64_t rows) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto scale = hn::Set(d, factor(i));
    S* row = to[first + i];
    for_each_vector(d, to.depth, [&](std::int64_t j, auto part) HWY_ATTR {
      part.store(hn::Mul(hn::Load(d, from + i * width + j), scale), d, row + j);
    });
  }
}

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

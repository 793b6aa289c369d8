// Parts of attention: copies between strided rows and the contiguous blocks that block_product-inl.h multiplies, which
// keys tiles of rows see, masks, dropout. Blocks are padded with zeros to whole tiles, so that tails of vectors are
// handled in the copies and nowhere else. Compiled once for each SIMD target.
#if defined(BRAID_AUTOGRAD_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_AUTOGRAD_KERNELS_ATTENTION_INL_H_
#undef BRAID_AUTOGRAD_KERNELS_ATTENTION_INL_H_
#else
#define BRAID_AUTOGRAD_KERNELS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <braid/autograd/kernels/attention.h>
#include <braid/core/kernels/math-inl.h>
#include <braid/core/kernels/vector-inl.h>
#include <braid/core/products/kernels/block_product-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

inline constexpr std::int64_t kBlock = kAttentionBlock;

template <class T>
inline constexpr T kHidden = -std::numeric_limits<T>::infinity();

template <class T>
std::int64_t lanes_of() {
  return hn::Lanes(hn::ScalableTag<T>());
}

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

/// to [depth, kBlock] = factor * the transpose of from [rows, depth], zeros after them.
template <class S, class T>
void pack_columns(const S* from, std::int64_t stride, std::int64_t rows, std::int64_t depth, T factor, T* to) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kSide = kSquare<S>, kLanes = hn::MaxLanes(d);
  const auto scale = hn::Set(d, factor);
  const std::int64_t whole_columns = rows < kLanes ? 0 : depth / kSide * kSide;
  for (std::int64_t i = 0; i < rows; i += kLanes)
    for (std::int64_t j = 0; j < whole_columns; j += kSide) {
      const std::int64_t first = std::min(i, rows - kLanes);  // the last vector may overlap the one before
      hn::Vec<decltype(d)> columns[kSide];
      load_columns(d, from + first * stride + j, stride, columns);
      for (std::int64_t c = 0; c < kSide; ++c) hn::StoreU(hn::Mul(scale, columns[c]), d, to + (j + c) * kBlock + first);
    }
  for (std::int64_t j = 0; j < depth; ++j) {
    for (std::int64_t i = 0; j >= whole_columns && i < rows; ++i)
      to[j * kBlock + i] = factor * static_cast<T>(from[i * stride + j]);
    std::fill(to + j * kBlock + rows, to + (j + 1) * kBlock, T{0});
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

/// The rows of a tensor like q or, with one head at a position, like k.
template <class S, class U>
GroupedRows<U> query_rows(const AttentionHeads<S>& in, U* data) {
  return {data, in.depth, in.visible.group, in.query_stride};
}
template <class S, class U>
GroupedRows<U> key_rows(const AttentionHeads<S>& in, U* data) {
  return {data, in.depth, 1, in.key_stride};
}

/// What a tile of rows sees of the block of keys that begins at `key`, from 0 to kBlock there; the columns
/// are whole vectors. A row's own part of it is `of_row`.
struct TileOfKeys {
  Span keys, columns;

  TileOfKeys(Span seen, std::int64_t key, std::int64_t lanes)
      : keys{std::max<std::int64_t>(seen.begin - key, 0), std::min(seen.end - key, kBlock)},
        columns{round_down(keys.begin, lanes), round_up(std::max<std::int64_t>(keys.end, 0), lanes)} {}

  bool empty() const { return keys.end <= keys.begin; }
};

/// A block of rows in tiles of `height` rows, with the keys that each tile sees, rounded outwards to multiples of
/// `unit`.
struct Tiles {
  std::int64_t row, rows, height;
  std::array<Span, kBlock / kTileRows> seen;

  Tiles(const VisibleKeys& visible, std::int64_t row, std::int64_t rows, std::int64_t height = kTileRows,
        std::int64_t unit = 1)
      : row(row), rows(rows), height(height), seen{} {
    for (std::int64_t i = 0; i < rows; i += height) {
      const auto [begin, end] = visible.of_rows({row + i, row + std::min(i + height, rows)});
      seen[static_cast<std::size_t>(i / height)] = {round_down(begin, unit), round_up(end, unit)};
    }
  }

  Span at(std::int64_t i) const { return seen[static_cast<std::size_t>(i / height)]; }
  /// Calls f(i, tile) for the tiles that see some of a block of keys.
  HWY_INLINE void for_each(std::int64_t key, std::int64_t lanes, auto f) const {
    for (std::int64_t i = 0; i < rows; i += height)
      if (const TileOfKeys tile(at(i), key, lanes); !tile.empty()) f(i, tile);
  }
};

template <class S, class T = Compute<S>>
const T* mask_of_row(const AttentionHeads<S>& in, std::int64_t row) {
  return in.mask + in.visible.head(row) * in.mask_head_stride + in.visible.position(row) * in.mask_query_stride;
}

/// Whether the mask hides a block of keys from all of the rows, of which it looks at as few as it can.
template <class S, class T = Compute<S>>
bool masked_out(const AttentionHeads<S>& in, Span rows, std::int64_t key) {
  if (in.mask == nullptr) return false;
  const std::int64_t end = std::min(key + kBlock, in.visible.keys);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const T* mask = mask_of_row(in, row);
    if (std::any_of(mask + key, mask + end, [](T m) { return m != kHidden<T>; })) return false;
  }
  return true;
}

/// x = value in the vectors [begin, end)
template <class T>
HWY_INLINE void fill_vectors(T value, std::int64_t begin, std::int64_t end, T* x) {
  const hn::ScalableTag<T> d;
  for (std::int64_t j = begin; j < end; j += lanes_of<T>()) hn::Store(hn::Set(d, value), d, x + j);
}

/// x = value outside of `seen` in the vectors that hold it, by whole vectors: loads would wait for parts to be written.
template <class T>
HWY_INLINE void hide_around(T value, Span seen, Span vectors, T* x) {
  const hn::ScalableTag<T> d;
  const auto hidden = hn::Set(d, value);
  const auto first_n = [&](std::int64_t n) HWY_ATTR { return hn::FirstN(d, static_cast<std::size_t>(n)); };
  T *const first = x + vectors.begin, *const last = x + vectors.end - lanes_of<T>();
  if (vectors.end <= vectors.begin) return;
  if (seen.end < vectors.end)
    hn::Store(hn::IfThenElse(first_n(seen.end - (last - x)), hn::Load(d, last), hidden), d, last);
  if (seen.begin > vectors.begin)
    hn::Store(hn::IfThenElse(first_n(seen.begin - vectors.begin), hidden, hn::Load(d, first)), d, first);
}

/// scores [begin, end) += those of the mask; `scores` and `mask` begin at the same key.
template <class T>
HWY_INLINE void add_mask(const T* mask, std::int64_t begin, std::int64_t end, T* scores) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, end - begin, [&](std::int64_t j, auto part) HWY_ATTR {
    T* to = scores + begin + j;
    hn::Store(hn::Add(hn::Load(d, to), part.load(d, mask + begin + j)), d, to);
  });
}

/// scores [begin, end) -= slope * |distance| of the keys from a row's own position, where `scores` begin at `key`.
template <class S, class T = Compute<S>>
HWY_INLINE void add_alibi(const AttentionHeads<S>& in, std::int64_t row, std::int64_t key, std::int64_t begin,
                          std::int64_t end, T* scores) {
  const hn::ScalableTag<T> d;
  const VisibleKeys& visible = in.visible;
  const auto slope = hn::Set(d, in.alibi[visible.head(row)]);
  const std::int64_t ahead = key - (visible.position(row) + visible.keys - visible.queries);
  for_each_vector(d, end - begin, [&](std::int64_t j, auto part) HWY_ATTR {
    T* to = scores + begin + j;
    const auto distance = hn::Abs(hn::Iota(d, static_cast<T>(ahead + begin + j)));
    part.store(hn::NegMulAdd(slope, distance, part.load(d, to)), d, to);
  });
}

/// Replaces the scores [begin, end), whole vectors, by softcap * tanh(score / softcap); `slopes`, if there are some,
/// receive the derivative.
template <class T>
void cap(T softcap, std::int64_t begin, std::int64_t end, T* scores, T* slopes = nullptr) {
  const hn::ScalableTag<T> d;
  const auto limit = hn::Set(d, softcap), inverse = hn::Set(d, 1 / softcap);
  for (std::int64_t j = begin; j < end; j += lanes_of<T>()) {
    const auto t = tanh(d, hn::Mul(hn::Load(d, scores + j), inverse));
    hn::Store(hn::Mul(limit, t), d, scores + j);
    if (slopes != nullptr) hn::Store(hn::NegMulAdd(t, t, hn::Set(d, T{1})), d, slopes + j);
  }
}

/// factors [begin, end) = 1 / (1 - dropout) or, for what is dropped, 0. `factors` begins at `key`.
template <class S, class T = Compute<S>>
void draw_factors(const AttentionHeads<S>& in, std::int64_t row, std::int64_t key, Span keys, T* factors) {
  const VisibleKeys& visible = in.visible;
  const std::int64_t index = visible.head(row) * visible.queries + visible.position(row);
  rand_elements(in.rng, in.first_draw + index * visible.keys + key + keys.begin, keys.end - keys.begin,
                factors + keys.begin);
  const T dropout = static_cast<T>(in.dropout), kept = static_cast<T>(1 / (1 - in.dropout));
  std::transform(factors + keys.begin, factors + keys.end, factors + keys.begin,
                 [=](T u) { return u < dropout ? T{0} : kept; });
}

/// x [begin, end) *= factors
template <class T>
HWY_INLINE void multiply_by(const T* factors, std::int64_t begin, std::int64_t end, T* x) {
  const auto product = [](auto, auto v, auto factor) HWY_ATTR { return hn::Mul(v, factor); };
  transform(product, end - begin, x + begin, x + begin, factors + begin);
}

/// x [begin, end), whole vectors, *= factor
template <class T>
HWY_INLINE void scale_vectors(T factor, std::int64_t begin, std::int64_t end, T* x) {
  const hn::ScalableTag<T> d;
  for (std::int64_t j = begin; j < end; j += lanes_of<T>())
    hn::Store(hn::Mul(hn::Set(d, factor), hn::Load(d, x + j)), d, x + j);
}

/// Whether rows are best read where they are: bfloat16 is packed as floats.
template <class S>
inline constexpr bool kInPlace = std::is_same_v<S, Compute<S>>;

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

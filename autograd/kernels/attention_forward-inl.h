// What the forward pass of attention multiplies: blocks of floats or doubles, by vectors. Compiled per SIMD target.
#if defined(BRAID_AUTOGRAD_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_AUTOGRAD_KERNELS_ATTENTION_FORWARD_INL_H_
#undef BRAID_AUTOGRAD_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define BRAID_AUTOGRAD_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <braid/autograd/kernels/attention-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

/// The queries, keys and values that a task of the forward pass multiplies. Columns of keys are packed: where several
/// blocks of queries read them once for all, else when it is their turn; values where rows do not fill vectors.
template <class S, class T = Compute<S>>
struct KeyBlocks {
  static constexpr std::int64_t kTile = kTileRows, kUnit = 1;  // rows of a tile; what it sees is rounded to kUnit keys

  const AttentionHeads<S>& in;
  Span keys;  // begins with a block
  bool shared;
  std::int64_t width;
  T on_scores = 1;              // a factor that the products leave out
  T *columns, *rows, *queries;  // [blocks, depth, kBlock], [blocks, kBlock, width], [block, width]

  KeyBlocks(Arena<T>& arena, const AttentionHeads<S>& in, Span keys, bool shared)
      : in(in), keys(keys), shared(shared), width(round_up(in.depth, lanes_of<T>())) {
    const std::int64_t blocks = shared ? divide_up(keys.end - keys.begin, kBlock) : 1;
    columns = arena.take(blocks * kBlock * in.depth);
    rows = arena.take(blocks * kBlock * width);
    queries = arena.take(kBlock * width);
    if (arena.counts()) return;
    for (std::int64_t key = keys.begin; shared && key < keys.end; key += kBlock) {
      pack_k(key);
      if (!values_in_place()) pack_v(key);
    }
  }

  std::int64_t length(std::int64_t key) const { return std::min(kBlock, keys.end - key); }
  T* slot(T* blocks, std::int64_t key, std::int64_t size) const {
    return shared ? blocks + (key - keys.begin) * size : blocks;
  }
  void pack_k(std::int64_t key) const {
    pack_columns(in.k + key * in.key_stride, in.key_stride, length(key), in.depth, T{1}, slot(columns, key, in.depth));
  }
  void pack_v(std::int64_t key) const {
    pack_rows(key_rows(in, in.v), key, length(key), T{1}, slot(rows, key, width), width);
  }

  bool values_in_place() const { return kInPlace<S> && width == in.depth; }
  /// Whether a block of keys is best read where it is.
  bool in_place(std::int64_t rows, std::int64_t key) const {
    return kInPlace<S> && !shared && rows <= kTileRows / 2 && length(key) == kBlock;
  }
  Panel<const S> k_rows(std::int64_t key) const { return {in.k + key * in.key_stride, in.key_stride}; }
  Panel<const T> k_columns(std::int64_t key) const {
    if (!shared) pack_k(key);
    return {slot(columns, key, in.depth), kBlock};
  }
  Panel<const T> v(std::int64_t key) const {
    if constexpr (kInPlace<S>)
      if (values_in_place()) return {in.v + key * in.key_stride, in.key_stride};
    if (!shared) pack_v(key);
    return {slot(rows, key, width), width};
  }

  void take_queries(const Tiles& tiles) const {
    pack_rows(query_rows(in, in.q), tiles.row, tiles.rows, in.scale, queries, width);
  }

  /// Of tiles of rows and the block of keys from `key` on.
  void score(const Tiles& tiles, std::int64_t key, Panel<T> scores) const {
    const auto rows_left = [&](std::int64_t i) { return std::min(kTileRows, tiles.rows - i); };
    if constexpr (kInPlace<S>) {
      if (in_place(tiles.rows, key)) {
        multiply_few_rows_transposed<T>(tiles.rows, kBlock, in.depth, {queries, width, 1}, k_rows(key), scores);
        return;
      }
    }
    const Panel<const T> k = k_columns(key);
    tiles.for_each(key, lanes_of<T>(), [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
      const auto [from, to] = tile.columns;
      multiply_some_rows<T>(rows_left(i), to - from, in.depth, {queries + i * width, width, 1},
                            {k.data + from, k.row_step}, {scores.from(i).data + from, scores.row_step}, false);
    });
  }

  /// result += weights times the values of the block.
  void weigh(const Tiles& tiles, std::int64_t key, Panel<const T> weights, Panel<T> result) const {
    const Panel<const T> v = this->v(key);
    tiles.for_each(key, lanes_of<T>(), [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
      const auto [from, to] = tile.keys;
      multiply_some_rows<T>(std::min(kTileRows, tiles.rows - i), width, to - from,
                            {weights.from(i).data + from, weights.row_step, 1}, v.from(from), result.from(i), true);
    });
  }
};

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

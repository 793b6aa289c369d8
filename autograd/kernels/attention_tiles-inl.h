// What attention in bf16 multiplies where AMX or AVX512_BF16 does: packed tiles. Compiled once for each SIMD target.
#if defined(BRAID_AUTOGRAD_KERNELS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_AUTOGRAD_KERNELS_ATTENTION_TILES_INL_H_
#undef BRAID_AUTOGRAD_KERNELS_ATTENTION_TILES_INL_H_
#else
#define BRAID_AUTOGRAD_KERNELS_ATTENTION_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <tuple>

#include <braid/autograd/kernels/attention_forward-inl.h>
#include <braid/autograd/kernels/attention_vjp-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

HWY_INLINE bfloat16* take_tiles(Arena<float>& arena, std::int64_t n) {
  return reinterpret_cast<bfloat16*>(arena.take(divide_up(n, 2)));
}

/// Rows [first, first + count) as a matrix, copied to `copy` where their distances differ.
inline MatrixView<const bfloat16> view_of_rows(GroupedRows<const bfloat16> from, std::int64_t first, std::int64_t count,
                                               bfloat16* copy) {
  if (from.group == 1) return {from[first], from.stride};
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(from[first + i], from.depth, copy + i * from.depth);
  return {copy, from.depth};
}

/// c [m, n] = a b (+ c if `add`), of packed tiles: sums of k terms, for which b may be packed deeper.
inline void multiply_tiles(const AttentionHeads<bfloat16>& in, std::int64_t m, std::int64_t n, std::int64_t k,
                           const bfloat16* a, const bfloat16* b, std::int64_t depth_of_b, Panel<float> c, bool add) {
  in.multiply_tiles({.terms = 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .a = a,
                     .b = b,
                     .from = add ? c.data : nullptr,
                     .from_stride = c.row_step,
                     .beta = 1,
                     .c = {c.data, c.row_step},
                     .b_group = amx::packed_size(1, depth_of_b)});
}

/// KeyBlocks of packed tiles, to which weights are rounded. Products of bf16 are exact, so that scores have the
/// errors of their sums in f32.
struct KeyTiles {
  static constexpr std::int64_t kTile = amx::kGroup, kUnit = amx::kGroup;

  const AttentionHeads<bfloat16>& in;
  Span keys;
  bool shared;
  std::int64_t width;
  float on_scores;
  bfloat16 *k, *v, *queries, *weights, *rows;

  KeyTiles(Arena<float>& arena, const AttentionHeads<bfloat16>& in, Span keys, bool shared)
      : in(in), keys(keys), shared(shared), width(round_up(in.depth, amx::kLines)), on_scores(in.scale) {
    const std::int64_t blocks = shared ? divide_up(keys.end - keys.begin, kBlock) : 1;
    k = take_tiles(arena, blocks * size_of_k());
    v = take_tiles(arena, blocks * size_of_v());
    queries = take_tiles(arena, size_of_k());
    weights = take_tiles(arena, amx::packed_lines(kTile, kBlock));
    rows = take_tiles(arena, kBlock * in.depth);
    if (arena.counts()) return;
    for (std::int64_t key = keys.begin; shared && key < keys.end; key += kBlock) pack_k(key), pack_v(key);
  }

  std::int64_t size_of_k() const { return amx::packed_lines(kBlock, in.depth); }
  std::int64_t size_of_v() const { return amx::packed_lines(width, kBlock); }
  std::int64_t length(std::int64_t key) const { return std::min(kBlock, keys.end - key); }
  bfloat16* slot(bfloat16* blocks, std::int64_t key, std::int64_t size) const {
    return shared ? blocks + (key - keys.begin) / kBlock * size : blocks;
  }
  void pack_k(std::int64_t key) const {
    amx::pack<bfloat16>(amx::Side::right, 1, {in.k + key * in.key_stride, in.key_stride}, length(key), in.depth,
                        slot(k, key, size_of_k()));
  }
  void pack_v(std::int64_t key) const {
    amx::pack<bfloat16>(amx::Side::right, 1, {in.v + key * in.key_stride, in.key_stride, true}, in.depth, length(key),
                        slot(v, key, size_of_v()));
  }

  void take_queries(const Tiles& tiles) const {
    const MatrixView<const bfloat16> q = view_of_rows(query_rows(in, in.q), tiles.row, tiles.rows, rows);
    amx::pack(amx::Side::left, 1, q, tiles.rows, in.depth, queries);
  }

  void score(const Tiles& tiles, std::int64_t key, Panel<float> scores) const {
    if (!shared) pack_k(key);
    tiles.for_each(key, kTile, [&](std::int64_t i, const TileOfKeys& tile) {
      const std::int64_t from = tile.keys.begin, to = std::min(tile.keys.end, length(key));
      multiply_tiles(in, std::min(kTile, tiles.rows - i), to - from, in.depth, queries + amx::packed_lines(i, in.depth),
                     slot(k, key, size_of_k()) + amx::packed_lines(from, in.depth), in.depth,
                     {scores.from(i).data + from, scores.row_step}, false);
    });
  }

  void weigh(const Tiles& tiles, std::int64_t key, Panel<const float> by, Panel<float> result) const {
    if (!shared) pack_v(key);
    tiles.for_each(key, kTile, [&](std::int64_t i, const TileOfKeys& tile) {
      const std::int64_t from = tile.keys.begin, to = std::min(tile.keys.end, length(key));
      const std::int64_t count = std::min(kTile, tiles.rows - i);
      amx::pack_rounded({by.from(i).data + from, by.row_step}, count, to - from, weights);
      multiply_tiles(in, count, width, to - from, weights, slot(v, key, size_of_v()) + amx::packed_size(1, from),
                     length(key), result.from(i), true);
    });
  }
};

/// VjpBlocks of packed tiles, to which p and ds are rounded.
struct VjpTiles {
  static constexpr std::int64_t kRowUnit = kBlock, kGroup = amx::kGroup;

  const AttentionHeads<bfloat16>& in;
  VjpScratch<float> at;
  float on_k;
  bfloat16 *q, *dy;                  // [blocks, kBlock, depth], left
  bfloat16 *q_columns, *dy_columns;  // [blocks, depth, kBlock], right
  bfloat16 *k, *v, *k_columns, *weights;

  VjpTiles(Arena<float>& arena, const AttentionHeads<bfloat16>& in, const bfloat16* dy_rows = nullptr)
      : in(in), at(arena, in.visible.rows(), round_up(in.depth, amx::kLines), in.scale), on_k(in.scale) {
    const std::int64_t rows = in.visible.rows(), blocks = divide_up(rows, kBlock);
    for (bfloat16** x : {&q, &dy}) *x = take_tiles(arena, blocks * size());
    for (bfloat16** x : {&q_columns, &dy_columns}) *x = take_tiles(arena, blocks * size_of_columns());
    for (bfloat16** x : {&k, &v}) *x = take_tiles(arena, size());
    k_columns = take_tiles(arena, size_of_columns());
    weights = take_tiles(arena, amx::packed_lines(kGroup, kBlock));
    bfloat16* const copy = take_tiles(arena, kBlock * in.depth);
    for (std::int64_t row = 0; !arena.counts() && row < rows; row += kBlock) {
      const std::int64_t block = row / kBlock, count = std::min(kBlock, rows - row);
      for (const auto& [x, left, right] : {std::tuple(in.q, q, q_columns), {dy_rows, dy, dy_columns}}) {
        const MatrixView<const bfloat16> view = view_of_rows(query_rows(in, x), row, count, copy);
        amx::pack(amx::Side::left, 1, view, count, in.depth, left + block * size());
        amx::pack(amx::Side::right, 1, view.transpose(), in.depth, count, right + block * size_of_columns());
      }
    }
  }

  std::int64_t size() const { return amx::packed_lines(kBlock, in.depth); }
  std::int64_t size_of_columns() const { return amx::packed_lines(at.width, kBlock); }

  void take_keys(std::int64_t key, std::int64_t keys) const {
    const MatrixView<const bfloat16> k_rows{in.k + key * in.key_stride, in.key_stride};
    amx::pack(amx::Side::right, 1, k_rows, keys, in.depth, k);
    amx::pack<bfloat16>(amx::Side::right, 1, {in.v + key * in.key_stride, in.key_stride}, keys, in.depth, v);
    amx::pack(amx::Side::right, 1, k_rows.transpose(), in.depth, keys, k_columns);
  }

  void add(std::int64_t row, std::int64_t rows, std::int64_t key) const {
    const std::int64_t block = row / kBlock, keys = std::min(kBlock, in.visible.keys - key), width = at.width;
    const Tiles tiles(in.visible, row, rows, kGroup, kGroup);
    tiles.for_each(key, kGroup, [&](std::int64_t i, const TileOfKeys& tile) {
      const std::int64_t from = tile.keys.begin, to = std::min(tile.keys.end, keys);
      for (const auto& [a, b, c] : {std::tuple(q, k, at.p), {dy, v, at.ds}})
        multiply_tiles(in, std::min(kGroup, rows - i), to - from, in.depth,
                       a + block * size() + amx::packed_lines(i, in.depth), b + amx::packed_lines(from, in.depth),
                       in.depth, {c + i * kBlock + from, kBlock}, false);
    });
    softmax_vjp_rows(in, at, row, rows, key);
    for (std::int64_t j = 0; j < keys; j += kGroup) {
      const std::int64_t some_keys = std::min(kGroup, keys - j);
      const Span all = in.visible.rows_of({key + j, key + j + some_keys});
      const std::int64_t first = round_down(std::max(all.begin - row, std::int64_t{0}), kGroup);
      const std::int64_t last = std::min(all.end - row, rows);
      if (last <= first) continue;
      for (const auto& [by, x, sum] : {std::tuple(at.p, dy_columns, at.dv), {at.ds, q_columns, at.dk}}) {
        amx::pack_rounded({by + first * kBlock + j, kBlock, true}, some_keys, last - first, weights);
        multiply_tiles(in, some_keys, width, last - first, weights,
                       x + block * size_of_columns() + amx::packed_size(1, first),
                       std::min(kBlock, in.visible.rows() - row), {sum + j * width, width}, true);
      }
    }
    tiles.for_each(key, kGroup, [&](std::int64_t i, const TileOfKeys& tile) {
      const std::int64_t from = tile.keys.begin, to = std::min(tile.keys.end, keys);
      const std::int64_t count = std::min(kGroup, rows - i);
      amx::pack_rounded({at.ds + i * kBlock + from, kBlock}, count, to - from, weights);
      multiply_tiles(in, count, width, to - from, weights, k_columns + amx::packed_size(1, from), keys,
                     {at.dq + (row + i) * width, width}, true);
    });
  }
};

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

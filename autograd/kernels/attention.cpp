#include <braid/autograd/kernels/attention.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/autograd/kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include <hwy/contrib/math/math-inl.h>

#include <braid/autograd/kernels/packing-inl.h>
#include <braid/core/kernels/block_product-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kBlock = kAttentionBlock;
static_assert(kBlock == kPanel);

/// The part of a block of keys that queries see: all of it, or on the diagonal the keys up to their own position.
struct Diagonal {
  bool on;

  /// How many keys a tile of queries sees, exactly and rounded up to whole vectors.
  std::int64_t keys(std::int64_t tile) const { return on ? tile + kTileRows : kBlock; }
  std::int64_t columns(std::int64_t tile, std::int64_t lanes) const { return round_up(keys(tile), lanes); }
  /// The first query that sees a tile of keys.
  std::int64_t first_query(std::int64_t tile) const { return on ? tile : 0; }
};

/// Replaces scores by exp(score - maximum of the row); masked keys become 0. `before` keys precede the block.
template <class T>
void softmax_rows(std::int64_t rows, std::int64_t before, T* scores, std::int64_t row_step, T* maxima, T* sums) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d);
  for (std::int64_t i = 0; i < rows; ++i, scores += row_step) {
    const std::int64_t seen = before + i + 1;
    maxima[i] = max_element(d, seen, scores);
    const auto max = hn::Set(d, maxima[i]);
    sums[i] = sum_vectors(d, seen, [&](std::int64_t j, auto part) HWY_ATTR {
      const auto p = part.or_else(d, exp_to_one(d, hn::Sub(hn::Load(d, scores + j), max)), hn::Zero(d));
      hn::Store(p, d, scores + j);
      return p;
    });
    std::fill(scores + round_up(seen, lanes), scores + before + round_up(i + 1, std::max(lanes, kTileRows)), T{0});
  }
}

template <class T>
void forward(const AttentionHead<T>& head, std::int64_t first, std::int64_t last, T* y, T* logsumexp, T* scratch) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d), depth = head.depth, width = round_up(depth, lanes);
  const std::int64_t end = std::min(last * kBlock, head.length), padded = round_up(end, kBlock);
  Arena<T> arena{scratch};
  T *keys = arena.take(padded * depth), *values = arena.take(padded * width), *queries = arena.take(kBlock * width);
  T *scores = arena.take(kBlock * padded), *sums = arena.take(kBlock), *maxima = arena.take(kBlock);
  T* result = arena.take(kBlock * width);
  for (std::int64_t row = 0; row < end; row += kBlock) {
    const std::int64_t rows = std::min(kBlock, end - row), at = row * head.stride;
    pack_columns(head.k + at, head.stride, rows, depth, keys + row * depth);
    pack_rows(head.v + at, head.stride, rows, depth, T{1}, values + row * width, width);
  }
  const T scale = 1 / std::sqrt(static_cast<T>(depth));
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t row = block * kBlock, rows = std::min(kBlock, end - row);
    pack_rows(head.q + row * head.stride, head.stride, rows, depth, scale, queries, width);
    for (std::int64_t key = 0; key <= row; key += kBlock) {
      const Diagonal diagonal{key == row};
      for (std::int64_t i = 0; i < rows; i += kTileRows)
        multiply_rows<T>(diagonal.columns(i, lanes), depth, {queries + i * width, width, 1},
                         {keys + key * depth, kBlock}, {scores + i * padded + key, padded}, false);
    }
    softmax_rows(round_up(rows, kTileRows), row, scores, padded, maxima, sums);
    for (std::int64_t key = 0; key <= row; key += kBlock) {
      const Diagonal diagonal{key == row};
      for (std::int64_t i = 0; i < rows; i += kTileRows)
        multiply_rows<T>(width, diagonal.keys(i), {scores + i * padded + key, padded, 1}, {values + key * width, width},
                         {result + i * width, width}, key > 0);
    }
    unpack_rows(
        result, width, rows, depth, [&](std::int64_t i) { return 1 / sums[i]; }, y + row * head.stride, head.stride);
    for_each_vector(d, rows, [&](std::int64_t i, auto part) HWY_ATTR {
      part.store(hn::Add(hn::Load(d, maxima + i), hn::Log(d, hn::Load(d, sums + i))), d, logsumexp + row + i);
    });
  }
}

/// p = exp(s - logsumexp) over s, ds = p * (dp - delta) over dp; masked keys become 0.
template <class T>
void softmax_vjp_rows(std::int64_t rows, Diagonal diagonal, const T* logsumexp, const T* delta, T* s, T* dp) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d);
  for (std::int64_t i = 0; i < rows; ++i, s += kBlock, dp += kBlock) {
    const auto shift = hn::Set(d, logsumexp[i]), offset = hn::Set(d, delta[i]);
    const std::int64_t seen = diagonal.on ? i + 1 : kBlock;
    for_each_vector(d, seen, [&](std::int64_t j, auto part) HWY_ATTR {
      const auto p = part.or_else(d, exp_to_one(d, hn::Sub(hn::Load(d, s + j), shift)), hn::Zero(d));
      const auto ds = hn::Mul(p, hn::Sub(hn::Load(d, dp + j), offset));
      hn::Store(p, d, s + j);
      hn::Store(part.or_else(d, ds, hn::Zero(d)), d, dp + j);
    });
    const std::int64_t written = round_up(seen, lanes), tile = diagonal.keys(i / kTileRows * kTileRows);
    std::fill(s + written, s + std::max(written, tile), T{0});
    std::fill(dp + written, dp + std::max(written, tile), T{0});
  }
}

/// delta [rows] = the dot products of the rows of a and b.
template <class T>
void dot_rows(const T* a, const T* b, std::int64_t stride, std::int64_t rows, std::int64_t depth, T* delta) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < rows; ++i, a += stride, b += stride) {
    delta[i] = sum_vectors(d, depth, [&](std::int64_t j, auto part) HWY_ATTR {
      return hn::Mul(part.load(d, a + j), part.load(d, b + j));
    });
  }
}

/// The operands of one head's vjp in scratch memory, rows padded to `width`.
template <class T>
struct VjpScratch {
  std::int64_t width;
  T *q, *dy, *dq;            // [length, width]; q is scaled by 1 / sqrt(depth)
  T *logsumexp, *delta;      // [length]
  T *k, *dk, *dv;            // [block, width]
  T *k_columns, *v_columns;  // [depth, block]
  T *p, *ds;                 // [block, block]

  VjpScratch(Arena<T> arena, std::int64_t length, std::int64_t depth)
      : width(round_up(depth, hn::Lanes(hn::ScalableTag<T>()))) {
    const std::int64_t padded = round_up(length, kTileRows);
    for (T** rows : {&q, &dy, &dq}) *rows = arena.take(padded * width);
    for (T** line : {&logsumexp, &delta}) *line = arena.take(padded);
    for (T** block : {&k, &dk, &dv}) *block = arena.take(kBlock * width);
    for (T** columns : {&k_columns, &v_columns}) *columns = arena.take(depth * kBlock);
    for (T** square : {&p, &ds}) *square = arena.take(kBlock * kBlock);
  }
};

/// Adds the share of one block of queries, which begins at `row`, and one block of keys to dq, dk, dv:
/// p = exp(q k^T - logsumexp), ds = p * (dy v^T - delta), dq += ds k, dk += ds^T q, dv += p^T dy.
template <class T>
void vjp_block(const VjpScratch<T>& at, std::int64_t row, std::int64_t rows, std::int64_t keys, std::int64_t depth,
               Diagonal diagonal) {
  const std::int64_t lanes = hn::Lanes(hn::ScalableTag<T>()), width = at.width;
  const T *q = at.q + row * width, *dy = at.dy + row * width;
  for (std::int64_t i = 0; i < rows; i += kTileRows) {
    const std::int64_t columns = diagonal.columns(i, lanes);
    multiply_rows<T>(columns, depth, {q + i * width, width, 1}, {at.k_columns, kBlock}, {at.p + i * kBlock, kBlock},
                     false);
    multiply_rows<T>(columns, depth, {dy + i * width, width, 1}, {at.v_columns, kBlock}, {at.ds + i * kBlock, kBlock},
                     false);
  }
  softmax_vjp_rows(rows, diagonal, at.logsumexp + row, at.delta + row, at.p, at.ds);
  for (std::int64_t j = 0; j < keys; j += kTileRows) {
    const std::int64_t first = diagonal.first_query(j);
    const auto share = [&](const T* weights, const T* x, T* sum) HWY_ATTR {
      multiply_rows<T>(width, rows - first, {weights + first * kBlock + j, 1, kBlock}, {x + first * width, width},
                       {sum + j * width, width}, true);
    };
    share(at.p, dy, at.dv);
    share(at.ds, q, at.dk);
  }
  for (std::int64_t i = 0; i < rows; i += kTileRows)
    multiply_rows<T>(width, diagonal.keys(i), {at.ds + i * kBlock, kBlock, 1}, {at.k, width},
                     {at.dq + (row + i) * width, width}, true);
}

template <class T>
void vjp(const AttentionHead<T>& head, std::int64_t first, std::int64_t last, const AttentionCotangents<T>& out,
         T* scratch) {
  const std::int64_t length = head.length, depth = head.depth, stride = head.stride;
  const std::int64_t begin = first * kBlock, end = std::min(last * kBlock, length), tiles = round_up(length, kTileRows);
  const VjpScratch<T> at({scratch}, length, depth);
  const T scale = 1 / std::sqrt(static_cast<T>(depth));
  pack_rows(head.q, stride, length, depth, scale, at.q, at.width);
  pack_rows(out.dy, stride, length, depth, T{1}, at.dy, at.width);
  std::fill_n(at.dq, tiles * at.width, T{0});
  dot_rows(out.dy, out.y, stride, length, depth, at.delta);
  std::fill(std::copy_n(out.logsumexp, length, at.logsumexp), at.logsumexp + tiles, T{0});
  std::fill(at.delta + length, at.delta + tiles, T{0});
  const auto one = [](std::int64_t) { return T{1}; };
  for (std::int64_t key = begin; key < end; key += kBlock) {
    const std::int64_t keys = std::min(kBlock, length - key), from = key * stride;
    pack_rows(head.k + from, stride, keys, depth, T{1}, at.k, at.width);
    pack_columns(head.k + from, stride, keys, depth, at.k_columns);
    pack_columns(head.v + from, stride, keys, depth, at.v_columns);
    std::fill_n(at.dk, kBlock * at.width, T{0});
    std::fill_n(at.dv, kBlock * at.width, T{0});
    for (std::int64_t row = key; row < length; row += kBlock)
      vjp_block(at, row, std::min(kBlock, tiles - row), keys, depth, {row == key});
    unpack_rows(at.dk, at.width, keys, depth, one, out.dk + from, stride);
    unpack_rows(at.dv, at.width, keys, depth, one, out.dv + from, stride);
  }
  unpack_rows(
      at.dq, at.width, length, depth, [scale](std::int64_t) { return scale; }, out.dq, stride);
}

template <class T>
constexpr AttentionKernels<T> kTable = {.forward = forward<T>, .vjp = vjp<T>};

Tables<AttentionKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::kernels {

std::int64_t attention_scratch(std::int64_t length, std::int64_t depth) {
  const std::int64_t block = kAttentionBlock, rows = (length + block - 1) / block * block,
                     width = (depth + 15) / 16 * 16;
  const std::int64_t forward = rows * (2 * width + block) + 2 * block * (width + 1);
  const std::int64_t vjp = rows * (3 * width + 2) + 5 * block * width + 2 * block * block;
  return std::max(forward, vjp);
}

HWY_EXPORT(tables);

Tables<AttentionKernels> attention_kernels() { return HWY_DYNAMIC_DISPATCH(tables)(); }

}  // namespace braid::kernels
#endif

#include <braid/autograd/kernels/attention.h>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include <braid/autograd/kernels/attention_forward-inl.h>
#include <braid/autograd/kernels/attention_tiles-inl.h>
#include <braid/autograd/kernels/attention_vjp-inl.h>
#include <braid/core/kernels/dispatch-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

/// Replaces the scores of a block of rows by exp(score - maximum of the row), which is 0 for hidden keys, and drops
/// some after they have been summed. Each sum is one chain over 64 bytes at a time from key 0 on, so that it depends on
/// nothing but what the row sees. `scores` begin at `key`.
template <class S, class T = Compute<S>>
void softmax_rows(const AttentionHeads<S>& in, const Tiles& tiles, std::int64_t key, T on_scores, Panel<T> scores,
                  T* maxima, T* sums, T* factors) {
  using D = hn::ScalableTag<T>;
  const D d;
  const std::int64_t lanes = hn::Lanes(d), wide = kParts<D> * lanes;
  for (std::int64_t i = 0; i < tiles.rows; ++i) {
    T* const s = scores.data + i * scores.row_step;
    const Span seen = in.visible.of_row(tiles.row + i), tile = tiles.at(i);
    const std::int64_t begin = seen.begin - key, end = seen.end - key;
    const std::int64_t first = round_down(begin, lanes), last = std::max(first, round_up(end, lanes));
    if (on_scores != 1) scale_vectors(on_scores, first, last, s);
    if (in.softcap != 0) cap(in.softcap, first, last, s);
    if (in.alibi != nullptr) add_alibi(in, tiles.row + i, key, begin, end, s);
    if (in.mask != nullptr) add_mask(mask_of_row(in, tiles.row + i) + key, first, end, s);
    hide_around(kHidden<T>, {begin, end}, {first, last}, s);
    const T sink = in.sinks == nullptr ? kHidden<T> : in.sinks[in.visible.head(tiles.row + i)];
    maxima[i] = std::max(max_element(d, last - first, s + first), sink);
    const auto shift = hn::Set(d, maxima[i] == kHidden<T> ? T{0} : maxima[i]);
    hn::Vec<D> sum[kParts<D>];
    for (auto& part : sum) part = hn::Zero(d);
    for (std::int64_t j = round_down(first, wide); j < last; j += wide)
      for (int k = 0; k < kParts<D>; ++k) {
        const std::int64_t at = j + k * lanes;
        if (kParts<D> > 1 && (at < first || at >= last)) continue;
        const auto p = exp_to_one(d, hn::Sub(hn::Load(d, s + at), shift));
        sum[k] = hn::Add(sum[k], p);
        hn::Store(p, d, s + at);
      }
    sums[i] = sum_lanes<kParts<D>>(d, sum);
    if (in.sinks != nullptr) sums[i] += hn::GetLane(exp_to_one(d, hn::Sub(hn::Set(d, sink), shift)));
    fill_vectors(T{0}, round_down(tile.begin - key, lanes), first, s);
    fill_vectors(T{0}, last, round_up(tile.end - key, lanes), s);
    if (in.dropout == 0 || end <= begin) continue;
    draw_factors(in, tiles.row + i, key, {begin, end}, factors);
    multiply_by(factors, begin, end, s);
  }
}

/// y and logsumexp of a block of rows from their weighted sums of values; zero and infinity if a row sees nothing.
template <class S, class T = Compute<S>>
void write_rows(const AttentionHeads<S>& in, const Tiles& tiles, const T* result, std::int64_t width, const T* maxima,
                const T* sums, S* y, T* logsumexp) {
  const hn::ScalableTag<T> d;
  const auto inverse = [&](std::int64_t i) { return sums[i] == T{0} ? T{0} : 1 / sums[i]; };
  unpack_rows(result, width, inverse, query_rows(in, y), tiles.row, tiles.rows);
  for_each_vector(d, tiles.rows, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto sum = hn::Load(d, sums + i), seen = hn::Add(hn::Load(d, maxima + i), log(d, sum));
    part.store(hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), hn::Inf(d), seen), d, logsumexp + tiles.row + i);
  });
}

/// The scratch memory of the forward pass for the blocks of rows [first, last).
template <class S, class Blocks, class T = Compute<S>>
struct ForwardScratch {
  std::int64_t rows_end;
  Span seen;
  Blocks blocks;
  std::int64_t padded;                           // keys, in whole blocks
  T *result, *sums, *maxima, *factors, *scores;  // [block, width], [block], [block], [padded], [rows, padded]

  ForwardScratch(Arena<T>& arena, const AttentionHeads<S>& in, std::int64_t first, std::int64_t last)
      : rows_end(std::min(last * kBlock, in.visible.rows())),
        seen(in.visible.of_rows({first * kBlock, rows_end})),
        blocks(arena, in, {round_down(seen.begin, kBlock), seen.end}, last - first > 1),
        padded(round_up(seen.end - blocks.keys.begin, kBlock)) {
    result = arena.take(kBlock * blocks.width);
    for (T** line : {&sums, &maxima}) *line = arena.take(kBlock);
    factors = arena.take(padded);
    scores = arena.take(round_up(std::min(kBlock, rows_end - first * kBlock), kTileRows) * padded);
  }
};

template <class S, class Blocks, class T = Compute<S>>
void forward(const AttentionHeads<S>& in, std::int64_t first, std::int64_t last, S* y, T* logsumexp, T* scratch) {
  Arena<T> arena{scratch};
  const ForwardScratch<S, Blocks> at(arena, in, first, last);
  const Panel<T> result{at.result, at.blocks.width};
  for (std::int64_t row = first * kBlock; row < at.rows_end; row += kBlock) {
    const Tiles tiles(in.visible, row, std::min(kBlock, at.rows_end - row), Blocks::kTile, Blocks::kUnit);
    const Span all = in.visible.of_rows({row, row + tiles.rows});
    const std::int64_t begin = round_down(all.begin, kBlock);
    const auto scores = [&](std::int64_t key) { return Panel<T>{at.scores + key - begin, at.padded}; };
    at.blocks.take_queries(tiles);
    for (std::int64_t key = begin; key < all.end; key += kBlock) {
      if (!masked_out(in, {row, row + tiles.rows}, key))
        at.blocks.score(tiles, key, scores(key));
      else
        for (std::int64_t i = 0; i < tiles.rows; ++i) std::fill_n(scores(key).from(i).data, kBlock, T{0});
    }
    softmax_rows(in, tiles, begin, at.blocks.on_scores, scores(begin), at.maxima, at.sums, at.factors);
    std::fill_n(at.result, round_up(tiles.rows, kTileRows) * result.row_step, T{0});
    for (std::int64_t key = begin; key < all.end; key += kBlock)
      if (!masked_out(in, {row, row + tiles.rows}, key))
        at.blocks.weigh(tiles, key, {scores(key).data, at.padded}, result);
    write_rows(in, tiles, at.result, result.row_step, at.maxima, at.sums, y, logsumexp);
  }
}

template <class S, class Blocks, class T = Compute<S>>
void vjp(const AttentionHeads<S>& in, std::int64_t first, std::int64_t last, const AttentionCotangents<S>& out,
         T* scratch) {
  const hn::ScalableTag<T> d;
  const std::int64_t depth = in.depth, rows = in.visible.rows(), end = std::min(last * kBlock, in.visible.keys);
  Arena<T> arena{scratch};
  Blocks blocks(arena, in, out.dy);
  const VjpScratch<T>& at = blocks.at;
  const GroupedRows<const S> dy = query_rows(in, out.dy), y = query_rows(in, out.y);
  std::fill_n(at.dq, round_up(rows, kTileRows) * at.width, T{0});
  std::copy_n(out.logsumexp, rows, at.logsumexp);
  for (std::int64_t i = 0; i < rows; ++i) {
    const S *a = dy[i], *b = y[i];
    at.delta[i] = sum_vectors(d, depth, [&](std::int64_t j, auto part) HWY_ATTR {
      return hn::Mul(part.load(d, a + j), part.load(d, b + j));
    });
  }
  const auto all_by = [](T factor) { return [factor](std::int64_t) { return factor; }; };
  for (std::int64_t key = first * kBlock; key < end; key += kBlock) {
    const std::int64_t keys = std::min(kBlock, end - key);
    blocks.take_keys(key, keys);
    for (T* sums : {at.dk, at.dv}) std::fill_n(sums, kBlock * at.width, T{0});
    const Span reached = in.visible.rows_of({key, key + keys});
    const std::int64_t rows_end = std::min(round_up(reached.end, kTileRows), rows);
    for (std::int64_t row = round_down(reached.begin, Blocks::kRowUnit); row < rows_end; row += kBlock) {
      const std::int64_t count = std::min(kBlock, rows_end - row);
      if (!masked_out(in, {row, row + count}, key)) blocks.add(row, count, key);
    }
    unpack_rows(at.dk, at.width, all_by(blocks.on_k), key_rows(in, out.dk), key, keys);
    unpack_rows(at.dv, at.width, all_by(1), key_rows(in, out.dv), key, keys);
  }
  unpack_rows(at.dq, at.width, all_by(in.scale), query_rows(in, out.dq), 0, rows);
}

/// The number of elements that a ForwardScratch or the blocks of a vjp take. Reads no tensors.
template <class Memory, class S, class... Blocks>
std::int64_t elements_of(const AttentionHeads<S>& in, Blocks... blocks) {
  Arena<Compute<S>> counting{nullptr};
  Memory(counting, in, blocks...);
  return counting.taken;
}

template <class S, class Keys = KeyBlocks<S>, class Vjp = VjpBlocks<S>>
constexpr AttentionKernels<S> kTable = {.forward = forward<S, Keys>,
                                        .forward_scratch = elements_of<ForwardScratch<S, Keys>, S>,
                                        .vjp = vjp<S, Vjp>,
                                        .vjp_scratch = elements_of<Vjp, S>};

AttentionTables tables() {
  return {{kTable<float>, kTable<double>, kTable<bfloat16>}, kTable<bfloat16, KeyTiles, VjpTiles>};
}

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, AttentionTables attention_kernels())

#include <braid/autograd/kernels/attention.h>

#include <cmath>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include <braid/autograd/kernels/attention-inl.h>
#include <braid/core/kernels/dispatch-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

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

/// Replaces the scores of a block of rows by exp(score - maximum of the row), which is 0 for hidden keys, and drops
/// some after they have been summed. Each sum is one chain over 64 bytes at a time from key 0 on, so that it depends on
/// nothing but what the row sees. `scores` begin at `key`.
template <class S, class T = Compute<S>>
void softmax_rows(const AttentionHeads<S>& in, const Tiles& tiles, std::int64_t key, Panel<T> scores, T* maxima,
                  T* sums, T* factors) {
  using D = hn::ScalableTag<T>;
  const D d;
  const std::int64_t lanes = hn::Lanes(d), wide = kParts<D> * lanes;
  for (std::int64_t i = 0; i < tiles.rows; ++i) {
    T* const s = scores.data + i * scores.row_step;
    const Span seen = in.visible.of_row(tiles.row + i), tile = tiles.at(i);
    const std::int64_t begin = seen.begin - key, end = seen.end - key;
    const std::int64_t first = round_down(begin, lanes), last = std::max(first, round_up(end, lanes));
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
template <class S, class T = Compute<S>>
struct ForwardScratch {
  std::int64_t rows_end;
  Span seen;
  KeyBlocks<S> blocks;
  std::int64_t padded;                  // keys, in whole blocks
  T *queries, *result;                  // [block, width]
  T *sums, *maxima, *factors, *scores;  // [block], [block], [padded], [rows, padded]

  ForwardScratch(Arena<T>& arena, const AttentionHeads<S>& in, std::int64_t first, std::int64_t last)
      : rows_end(std::min(last * kBlock, in.visible.rows())),
        seen(in.visible.of_rows({first * kBlock, rows_end})),
        blocks(arena, in, {round_down(seen.begin, kBlock), seen.end}, last - first > 1),
        padded(round_up(seen.end - blocks.keys.begin, kBlock)) {
    for (T** rows : {&queries, &result}) *rows = arena.take(kBlock * blocks.width);
    for (T** line : {&sums, &maxima}) *line = arena.take(kBlock);
    factors = arena.take(padded);
    scores = arena.take(round_up(std::min(kBlock, rows_end - first * kBlock), kTileRows) * padded);
  }
};

template <class S, class T = Compute<S>>
void forward(const AttentionHeads<S>& in, std::int64_t first, std::int64_t last, S* y, T* logsumexp, T* scratch) {
  Arena<T> arena{scratch};
  const ForwardScratch<S> at(arena, in, first, last);
  const KeyBlocks<S>& blocks = at.blocks;
  T *const queries = at.queries, *const result = at.result, *const all_scores = at.scores;
  const std::int64_t lanes = lanes_of<T>(), depth = in.depth, width = blocks.width, padded = at.padded;
  for (std::int64_t row = first * kBlock; row < at.rows_end; row += kBlock) {
    const Tiles tiles(in.visible, row, std::min(kBlock, at.rows_end - row));
    const Span all = in.visible.of_rows({row, row + tiles.rows});
    const std::int64_t begin = round_down(all.begin, kBlock);
    const auto rows_left = [&](std::int64_t i) { return std::min(kTileRows, tiles.rows - i); };
    const auto scores = [&](std::int64_t i, std::int64_t key) { return all_scores + i * padded + key - begin; };
    pack_rows(query_rows(in, in.q), row, tiles.rows, in.scale, queries, width);
    for (std::int64_t key = begin; key < all.end; key += kBlock) {
      if (masked_out(in, {row, row + tiles.rows}, key)) {
        for (std::int64_t i = 0; i < tiles.rows; ++i) std::fill_n(scores(i, key), kBlock, T{0});
        continue;
      }
      if constexpr (kInPlace<S>) {
        if (blocks.in_place(tiles.rows, key)) {
          multiply_few_rows_transposed<T>(tiles.rows, kBlock, depth, {queries, width, 1}, blocks.k_rows(key),
                                          {scores(0, key), padded});
          continue;
        }
      }
      const Panel<const T> k = blocks.k_columns(key);
      tiles.for_each(key, lanes, [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
        const auto [from, to] = tile.columns;
        multiply_some_rows<T>(rows_left(i), to - from, depth, {queries + i * width, width, 1},
                              {k.data + from, k.row_step}, {scores(i, key) + from, padded}, false);
      });
    }
    softmax_rows(in, tiles, begin, {all_scores, padded}, at.maxima, at.sums, at.factors);
    std::fill_n(result, round_up(tiles.rows, kTileRows) * width, T{0});
    for (std::int64_t key = begin; key < all.end; key += kBlock) {
      if (masked_out(in, {row, row + tiles.rows}, key)) continue;
      const Panel<const T> v = blocks.v(key);
      tiles.for_each(key, lanes, [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
        const auto [from, to] = tile.keys;
        multiply_some_rows<T>(rows_left(i), width, to - from, {scores(i, key) + from, padded, 1},
                              {v.data + from * v.row_step, v.row_step}, {result + i * width, width}, true);
      });
    }
    write_rows(in, tiles, result, width, at.maxima, at.sums, y, logsumexp);
  }
}

/// Whether multiplying by it only moves exponents.
template <class T>
bool is_power_of_two(T factor) {
  int exponent = 0;
  return std::abs(std::frexp(factor, &exponent)) == T{0.5};
}

/// What the vjp of one block of rows and one of keys reads and writes in scratch memory, rows padded to `width`.
template <class T>
struct VjpScratch {
  std::int64_t width;
  T on_q, on_k;           // the scale goes with q, as in the forward pass, or with k where that gives the same scores
  Panel<const T> q, dy;   // [rows, width], where they lie or packed
  T* dq;                  // [rows, width]
  T *logsumexp, *delta;   // [rows]
  T *packed_k, *dk, *dv;  // [block, width]
  T *k_columns, *v_columns;  // [depth, block]
  T *p, *ds;                 // [block, block]
  T *factors, *slopes;       // [block]

  template <class S>
  VjpScratch(Arena<T>& arena, const AttentionHeads<S>& in, const S* dy_rows = nullptr)
      : width(round_up(in.depth, lanes_of<T>())),
        on_q(is_power_of_two(in.scale) ? 1 : in.scale),
        on_k(in.scale / on_q) {
    const std::int64_t depth = in.depth, rows = in.visible.rows(), padded = round_up(rows, kTileRows);
    const auto rows_of = [&](const S* x, T factor) -> Panel<const T> {
      if constexpr (kInPlace<S>)
        if (factor == 1 && width == depth && padded == rows && in.visible.group == 1) return {x, in.query_stride};
      T* const packed = arena.take(padded * width);
      if (!arena.counts()) pack_rows(query_rows(in, x), 0, rows, factor, packed, width);
      return {packed, width};
    };
    q = rows_of(in.q, on_q);
    dy = rows_of(dy_rows, T{1});
    dq = arena.take(padded * width);
    for (T** line : {&logsumexp, &delta}) *line = arena.take(padded);
    for (T** block : {&packed_k, &dk, &dv}) *block = arena.take(kBlock * width);
    for (T** columns : {&k_columns, &v_columns}) *columns = arena.take(depth * kBlock);
    for (T** square : {&p, &ds}) *square = arena.take(kBlock * kBlock);
    for (T** line : {&factors, &slopes}) *line = arena.take(kBlock);
  }
};

/// p = exp(s - logsumexp) over s, ds = p * (dp - delta) over dp, both 0 for hidden keys; p and dp after dropout.
template <class S, class T = Compute<S>>
void softmax_vjp_rows(const AttentionHeads<S>& in, const VjpScratch<T>& at, std::int64_t row, std::int64_t rows,
                      std::int64_t key) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = hn::Lanes(d);
  for (std::int64_t i = 0; i < rows; ++i) {
    T *const s = at.p + i * kBlock, *const dp = at.ds + i * kBlock;
    const TileOfKeys seen(in.visible.of_row(row + i), key, lanes);
    const auto [begin, end] = seen.empty() ? Span{0, 0} : seen.keys;
    const auto [first, last] = seen.empty() ? Span{0, 0} : seen.columns;
    if (in.softcap != 0) cap(in.softcap, first, last, s, at.slopes);
    if (in.alibi != nullptr) add_alibi(in, row + i, key, begin, end, s);
    if (in.mask != nullptr) add_mask(mask_of_row(in, row + i) + key, first, end, s);
    if (in.dropout != 0) {
      std::fill_n(at.factors, kBlock, T{0});
      draw_factors(in, row + i, key, {begin, end}, at.factors);
      multiply_by(at.factors, begin, end, dp);
    }
    const auto shift = hn::Set(d, at.logsumexp[row + i]), offset = hn::Set(d, at.delta[row + i]);
    for (std::int64_t j = first; j < last; j += lanes) {
      const auto p = exp_to_one(d, hn::Sub(hn::Load(d, s + j), shift));
      hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, dp + j), offset)), d, dp + j);
      hn::Store(in.dropout == 0 ? p : hn::Mul(p, hn::Load(d, at.factors + j)), d, s + j);
    }
    if (in.softcap != 0) multiply_by(at.slopes, begin, end, dp);
    for (T* line : {s, dp}) {
      hide_around(T{0}, {begin, end}, {first, last}, line);
      fill_vectors(T{0}, 0, first, line);
      fill_vectors(T{0}, last, kBlock, line);
    }
  }
}

/// Adds the share of the rows [row, row + rows) and one block of keys to dq, dk, dv:
/// p = exp(q k^T - logsumexp), ds = p * (dy v^T - delta), dq += ds k, dk += ds^T q, dv += p^T dy.
template <class S, class T = Compute<S>>
void vjp_block(const AttentionHeads<S>& in, const VjpScratch<T>& at, std::int64_t row, std::int64_t rows,
               std::int64_t key, Panel<const T> k) {
  const std::int64_t lanes = lanes_of<T>(), width = at.width, depth = in.depth;
  const Panel<const T> q = at.q.from(row), dy = at.dy.from(row);
  const Tiles tiles(in.visible, row, rows);
  tiles.for_each(key, lanes, [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
    const auto [from, to] = tile.columns;
    multiply_rows<T>(to - from, depth, q.from(i).scalars(), {at.k_columns + from, kBlock},
                     {at.p + i * kBlock + from, kBlock}, false);
    multiply_rows<T>(to - from, depth, dy.from(i).scalars(), {at.v_columns + from, kBlock},
                     {at.ds + i * kBlock + from, kBlock}, false);
  });
  softmax_vjp_rows(in, at, row, rows, key);
  for (std::int64_t j = 0; j < std::min(kBlock, in.visible.keys - key); j += kTileRows) {
    const Span all = in.visible.rows_of({key + j, std::min(key + j + kTileRows, in.visible.keys)});
    const std::int64_t first = std::max(all.begin - row, std::int64_t{0}), last = std::min(all.end - row, rows);
    if (last <= first) continue;
    const auto share = [&](const T* weights, Panel<const T> x, T* sum) HWY_ATTR {
      multiply_rows<T>(width, last - first, {weights + first * kBlock + j, 1, kBlock}, x.from(first),
                       {sum + j * width, width}, true);
    };
    share(at.p, dy, at.dv);
    share(at.ds, q, at.dk);
  }
  tiles.for_each(key, lanes, [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
    const auto [from, to] = tile.keys;
    multiply_rows<T>(width, to - from, {at.ds + i * kBlock + from, kBlock, 1}, {k.data + from * k.row_step, k.row_step},
                     {at.dq + (row + i) * width, width}, true);
  });
}

template <class S, class T = Compute<S>>
void vjp(const AttentionHeads<S>& in, std::int64_t first, std::int64_t last, const AttentionCotangents<S>& out,
         T* scratch) {
  const hn::ScalableTag<T> d;
  const std::int64_t depth = in.depth, rows = in.visible.rows(), end = std::min(last * kBlock, in.visible.keys);
  Arena<T> arena{scratch};
  const VjpScratch<T> at(arena, in, out.dy);
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
    const std::int64_t keys = std::min(kBlock, end - key), from = key * in.key_stride;
    Panel<const T> k{at.packed_k, at.width};
    if constexpr (kInPlace<S>)
      if (at.width == depth) k = {in.k + from, in.key_stride};
    if (k.data == at.packed_k) pack_rows(key_rows(in, in.k), key, keys, T{1}, at.packed_k, at.width);
    pack_columns(in.k + from, in.key_stride, keys, depth, at.on_k, at.k_columns);
    pack_columns(in.v + from, in.key_stride, keys, depth, T{1}, at.v_columns);
    for (T* sums : {at.dk, at.dv}) std::fill_n(sums, kBlock * at.width, T{0});
    const Span reached = in.visible.rows_of({key, key + keys});
    const std::int64_t rows_end = std::min(round_up(reached.end, kTileRows), rows);
    for (std::int64_t row = round_down(reached.begin, kTileRows); row < rows_end; row += kBlock) {
      const std::int64_t count = std::min(kBlock, rows_end - row);
      if (!masked_out(in, {row, row + count}, key)) vjp_block(in, at, row, count, key, k);
    }
    unpack_rows(at.dk, at.width, all_by(at.on_k), key_rows(in, out.dk), key, keys);
    unpack_rows(at.dv, at.width, all_by(1), key_rows(in, out.dv), key, keys);
  }
  unpack_rows(at.dq, at.width, all_by(in.scale), query_rows(in, out.dq), 0, rows);
}

/// The number of elements that a ForwardScratch or a VjpScratch takes. Reads no tensors.
template <class Memory, class S, class... Blocks>
std::int64_t elements_of(const AttentionHeads<S>& in, Blocks... blocks) {
  Arena<Compute<S>> counting{nullptr};
  Memory(counting, in, blocks...);
  return counting.taken;
}

template <class T>
constexpr AttentionKernels<T> kTable = {.forward = forward<T>,
                                        .forward_scratch = elements_of<ForwardScratch<T>, T>,
                                        .vjp = vjp<T>,
                                        .vjp_scratch = elements_of<VjpScratch<Compute<T>>, T>};

Tables<AttentionKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<AttentionKernels> attention_kernels())

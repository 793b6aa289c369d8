// What the vjp of attention multiplies: blocks of floats or doubles, by vectors. Compiled once for each SIMD target.
#if defined(BRAID_AUTOGRAD_KERNELS_ATTENTION_VJP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_AUTOGRAD_KERNELS_ATTENTION_VJP_INL_H_
#undef BRAID_AUTOGRAD_KERNELS_ATTENTION_VJP_INL_H_
#else
#define BRAID_AUTOGRAD_KERNELS_ATTENTION_VJP_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <braid/autograd/kernels/attention-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {

/// Whether multiplying by it only moves exponents.
template <class T>
bool is_power_of_two(T factor) {
  int exponent = 0;
  return std::abs(std::frexp(factor, &exponent)) == T{0.5};
}

/// What the vjp of one block of rows and one of keys reads and writes in scratch memory beside what it multiplies.
template <class T>
struct VjpScratch {
  std::int64_t width;    // of rows
  T on_scores;           // a factor that the products leave out
  T* dq;                 // [rows, width]
  T *logsumexp, *delta;  // [rows]
  T *dk, *dv;            // [block, width]
  T *p, *ds;             // [block, block]
  T *factors, *slopes;   // [block]

  VjpScratch(Arena<T>& arena, std::int64_t rows, std::int64_t width, T on_scores) : width(width), on_scores(on_scores) {
    const std::int64_t padded = round_up(rows, kTileRows);
    dq = arena.take(padded * width);
    for (T** line : {&logsumexp, &delta}) *line = arena.take(padded);
    for (T** block : {&dk, &dv}) *block = arena.take(kBlock * width);
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
    if (at.on_scores != 1) scale_vectors(at.on_scores, first, last, s);
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

/// What the vjp multiplies: queries, dy, and a block of keys and values, rows padded to the width of `at`.
template <class S, class T = Compute<S>>
struct VjpBlocks {
  static constexpr std::int64_t kRowUnit = kTileRows;  // where blocks of rows may begin
  // More rows are packed: where rows of other heads lie between them they share few sets of a cache.
  static constexpr std::int64_t kMostInPlace = 2048;

  const AttentionHeads<S>& in;
  T on_q, on_k;  // the scale goes with q, as in the forward pass, or with k where that gives the same scores
  VjpScratch<T> at;
  Panel<const T> q, dy, k;   // [rows, width], where they lie or packed
  T* packed_k;               // [block, width]
  T *k_columns, *v_columns;  // [depth, block]

  VjpBlocks(Arena<T>& arena, const AttentionHeads<S>& in, const S* dy_rows = nullptr)
      : in(in),
        on_q(is_power_of_two(in.scale) ? 1 : in.scale),
        on_k(in.scale / on_q),
        at(arena, in.visible.rows(), round_up(in.depth, lanes_of<T>()), T{1}) {
    const std::int64_t depth = in.depth, width = at.width;
    const std::int64_t rows = in.visible.rows(), padded = round_up(rows, kTileRows);
    const auto rows_of = [&](const S* x, T factor) -> Panel<const T> {
      if constexpr (kInPlace<S>)
        if (factor == 1 && width == depth && padded == rows && rows <= kMostInPlace && in.visible.group == 1)
          return {x, in.query_stride};
      T* const packed = arena.take(padded * width);
      if (!arena.counts()) pack_rows(query_rows(in, x), 0, rows, factor, packed, width);
      return {packed, width};
    };
    q = rows_of(in.q, on_q);
    dy = rows_of(dy_rows, T{1});
    packed_k = arena.take(kBlock * width);
    for (T** columns : {&k_columns, &v_columns}) *columns = arena.take(depth * kBlock);
  }

  void take_keys(std::int64_t key, std::int64_t keys) {
    const std::int64_t from = key * in.key_stride;
    k = {packed_k, at.width};
    if constexpr (kInPlace<S>)
      if (at.width == in.depth) k = {in.k + from, in.key_stride};
    if (k.data == packed_k) pack_rows(key_rows(in, in.k), key, keys, T{1}, packed_k, at.width);
    pack_columns(in.k + from, in.key_stride, keys, in.depth, on_k, k_columns);
    pack_columns(in.v + from, in.key_stride, keys, in.depth, T{1}, v_columns);
  }

  /// Adds the share of the rows [row, row + rows) and the block of keys to dq, dk, dv:
  /// p = exp(q k^T - logsumexp), ds = p * (dy v^T - delta), dq += ds k, dk += ds^T q, dv += p^T dy.
  void add(std::int64_t row, std::int64_t rows, std::int64_t key) const {
    const std::int64_t lanes = lanes_of<T>(), width = at.width, depth = in.depth;
    const Panel<const T> q_rows = q.from(row), dy_rows = dy.from(row);
    const Tiles tiles(in.visible, row, rows);
    tiles.for_each(key, lanes, [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
      const auto [from, to] = tile.columns;
      multiply_rows<T>(to - from, depth, q_rows.from(i).scalars(), {k_columns + from, kBlock},
                       {at.p + i * kBlock + from, kBlock}, false);
      multiply_rows<T>(to - from, depth, dy_rows.from(i).scalars(), {v_columns + from, kBlock},
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
      share(at.p, dy_rows, at.dv);
      share(at.ds, q_rows, at.dk);
    }
    tiles.for_each(key, lanes, [&](std::int64_t i, const TileOfKeys& tile) HWY_ATTR {
      const auto [from, to] = tile.keys;
      multiply_rows<T>(width, to - from, {at.ds + i * kBlock + from, kBlock, 1}, k.from(from),
                       {at.dq + (row + i) * width, width}, true);
    });
  }
};

}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#pragma once
#include <algorithm>
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/core/products/kernels/amx.h>
#include <braid/core/random.h>

namespace braid::kernels {

/// The number of rows of queries, and of keys, in a block; blocks count from position 0: what a row sees is cut into
/// the same blocks whatever other rows there are.
inline constexpr std::int64_t kAttentionBlock = 64;

/// Consecutive positions.
struct Span {
  std::int64_t begin, end;
};

/// The keys that each row of queries sees. `group` query heads read one head of keys; row r is position r / group of
/// the head r % group, so that the rows that read a block of keys are neighbors.
struct VisibleKeys {
  std::int64_t queries, keys, group;
  bool causal;
  std::int64_t window;  // 0: all

  std::int64_t rows() const { return queries * group; }
  std::int64_t position(std::int64_t row) const { return group == 1 ? row : row / group; }  // divisions are slow
  std::int64_t head(std::int64_t row) const { return group == 1 ? 0 : row % group; }
  /// The keys that a row sees.
  Span of_row(std::int64_t row) const {
    const std::int64_t end = causal ? std::clamp<std::int64_t>(position(row) + 1 + keys - queries, 0, keys) : keys;
    return {window > 0 ? std::max<std::int64_t>(0, end - window) : 0, end};
  }
  /// The keys that some of rows [begin, end) see.
  Span of_rows(Span rows) const { return {of_row(rows.begin).begin, of_row(rows.end - 1).end}; }
  /// The rows that see some of these keys, of which there is at least one.
  Span rows_of(Span seen) const {
    const auto row_of = [&](std::int64_t key) {
      return std::clamp<std::int64_t>(key - keys + queries, 0, queries) * group;
    };
    return {causal ? row_of(seen.begin) : 0, window > 0 ? row_of(seen.end - 1 + window) : rows()};
  }
};

/// A head of keys and values with the query heads that read it.
template <class T>
struct AttentionHeads {
  VisibleKeys visible;
  std::int64_t depth;
  std::int64_t query_stride, key_stride;  // between positions of q, y, dq, .. and of k, v, dk, dv
  const T *q, *k, *v;                     // [queries, group, depth], [keys, depth]
  Compute<T> scale, softcap;              // of the scores; a softcap of 0 is none
  const Compute<T>*sinks, *alibi;         // [group], or null
  const Compute<T>* mask;                 // added to them, or null
  std::int64_t mask_head_stride, mask_query_stride;
  double dropout;
  Rng rng;
  amx::Multiply multiply_tiles;  // of bf16, for the kernels that multiply tiles
  std::int64_t first_draw;       // of `rand([B, H, T_q, T_k])`, the element of the first head, query and key
};

/// The arrays that the vjp reads and writes beside those.
template <class T>
struct AttentionCotangents {
  const T *y, *dy;              // like q
  const Compute<T>* logsumexp;  // [rows]
  Compute<T>* dq;               // like q
  T *dk, *dv;                   // like k, v
};

/// The kernels for the best instruction set of this processor. T is float, double or bfloat16. Scratch memory is
/// 64-byte aligned; forward_scratch and vjp_scratch give the number of its elements.
template <class T>
struct AttentionKernels {
  /// y and logsumexp [rows] for the blocks of rows [first, last).
  void (*forward)(const AttentionHeads<T>& heads, std::int64_t first, std::int64_t last, T* y, Compute<T>* logsumexp,
                  Compute<T>* scratch);
  std::int64_t (*forward_scratch)(const AttentionHeads<T>& heads, std::int64_t first, std::int64_t last);
  /// dk and dv of the blocks of keys [first, last); dq receives their share only, for all rows.
  void (*vjp)(const AttentionHeads<T>& heads, std::int64_t first, std::int64_t last, const AttentionCotangents<T>& out,
              Compute<T>* scratch);
  std::int64_t (*vjp_scratch)(const AttentionHeads<T>& heads);
};

struct AttentionTables : Tables<AttentionKernels> {
  AttentionKernels<bfloat16> tiles;  ///< for heads with multiply_tiles
};

AttentionTables attention_kernels();

}  // namespace braid::kernels

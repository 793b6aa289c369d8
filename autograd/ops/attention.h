#pragma once
#include <cstdint>

#include <braid/autograd/tape.h>
#include <braid/core/random.h>

namespace braid {

/// Options of attention(): the keys that a query sees, and how its scores are scaled, masked and dropped.
struct AttentionOptions {
  bool causal = true;       ///< query t sees the keys up to its own position, t + (T_k - T_q)
  std::int64_t window = 0;  ///< if positive, with `causal`: only the last `window` of these, its own included
  double scale = 0;         ///< factor of the scores; 0: 1 / sqrt(D)
  /// Broadcasts to [B, H, T_q, T_k]. i32: zero hides; floating, of the dtype of q: added to the scores, so that
  /// -infinity hides. It gets no gradient.
  Tensor mask = {};
  double softcap = 0;  ///< if positive, scores s become `softcap * tanh(s / softcap)` before the mask, as in Gemma 2
  Var sinks = {};      ///< [H], scores of one more key of each head, seen by all of its queries, whose value is zero
  /// [H], slopes: the score of a key at distance d from its query's own position loses alibi[h] * d (arXiv:2108.12409).
  /// They get no gradient.
  Tensor alibi = {};
  double dropout = 0;  ///< probability with which a weight becomes zero; the others are divided by 1 - dropout
  Rng* rng = nullptr;  ///< source of dropout, which advances it by `rng->split()`
};

/// Scaled dot-product attention: `y[t] = sum_s softmax_s(scale * dot(q[t], k[s])) v[s]` over the keys s that t sees,
/// for each head. q [B, T_q, H, D], k and v [B, T_k, H_kv, D] -> [B, T_q, H, D]; H_kv divides H, and query head h reads
/// head h / (H / H_kv). A query that sees no key gives zeros and gets no gradient. Sinks are as in gpt-oss and
/// DeepSeek-V4. The bits of a query's result depend on that query and the keys up to the last one it sees, not on other
/// queries: decoding one query at a time with a cache gives the bits of a full pass. They must be finite: a NaN or
/// infinity also reaches queries of the same 32 rows that do not see it. Keeps the logsumexp of each query and
/// recomputes the weights, a block at a time, for the gradients; blocks of keys that no query sees are skipped. In bf16
/// with D >= 32, where AMX or AVX512_BF16 multiplies and no BatchInvariant scope is active, weights and their
/// cotangents are rounded to bf16.
/// Throws ShapeError unless the shapes are these, DTypeError unless the dtypes are equal, ValueError for options
/// outside their ranges. arXiv:1706.03762, blocks of arXiv:2205.14135, groups of arXiv:2305.13245.
Var attention(const Var& q, const Var& k, const Var& v, const AttentionOptions& options = {});

}  // namespace braid

#pragma once
#include <algorithm>

#include <braid/nn/kv_cache.h>
#include <braid/nn/linear.h>
#include <braid/nn/norm.h>
#include <braid/nn/rotary.h>

namespace braid::nn {

/// How attention sees positions that have left its window: as one entry of each `rate` of them. DeepSeek-V4's heavily
/// compressed attention has a large rate and nothing else; its compressed sparse attention has all of these.
struct CompressionSettings {
  std::int64_t rate = 0;        ///< positions of an entry; 0: no compression
  bool overlapping = false;     ///< an entry also reads the `rate` positions before its own
  int index_heads = 0;          ///< heads of the Indexer's queries
  std::int64_t index_size = 0;  ///< channels of such a head, no fewer than are rotated
  std::int64_t index_top = 0;   ///< if positive: an Indexer chooses that many entries for each query

  bool operator==(const CompressionSettings&) const = default;  ///< all equal
};

/// Returns the settings. Throws ValueError, naming `module`, for a negative one, and unless index_top comes with heads
/// and their size.
const CompressionSettings& checked(const char* module, const CompressionSettings& settings);

/// The compressed keys of DeepSeek-V4: every `rate` positions of x [B, T, C] become one entry of D channels, a mean by
/// gates of each channel, normalized and rotated by the position at which it begins:
///
///     y_i = norm(sum_j softmax_j(gate(x_j) + position_bias_j) kv(x_j)),   j in window i
///
/// Where windows overlap, kv and gate have 2 D channels, and the first D are read by the entry of the window after.
/// Positions that do not fill a window have no entry yet.
struct Compressor {
  std::int64_t rate;  ///< positions of a window
  bool overlapping;   ///< whether windows overlap
  Linear kv, gate;    ///< [D or 2 D, C]
  Var position_bias;  ///< [rate, D or 2 D], zeros at the start
  RMSNorm norm;       ///< [D]

  Compressor(std::int64_t channels, std::int64_t size, const CompressionSettings& settings, double norm_eps, Rng& rng,
             DType dtype);  ///< `size` is D

  /// x [B, T, C] -> [B, T / rate, 1, D].
  Var operator()(const Var& x, const RotaryTurns& turns) const;
  /// The same for x that continues sequences at `position`: all entries so far, [B, n, 1, D]. Keeps the rows of
  /// kept(window) positions, so that the cache can go back as far as attention's.
  Tensor operator()(const Var& x, const RotaryTurns& turns, CompressionCache& cache, std::int64_t position,
                    std::int64_t window) const;
  /// The window of the rows in the cache beside an attention of `window` positions; 0: all.
  std::int64_t kept(std::int64_t window) const { return window == 0 ? 0 : std::max(window, 2 * rate); }

  void params(auto&& visit) {
    visit("kv", kv);
    visit("gate", gate);
    visit("position_bias", position_bias);
    visit("norm", norm);
  }
};

/// The lightning indexer of DeepSeek-V4, which chooses the `top` entries that a query sees by the scores
/// `sum_h weights(x)_h relu(q_h . key)` of entries of its own. Ties are broken as by PyTorch's topk; in a
/// BatchInvariant scope, earlier entries win. The choice has no gradient: its parameters get zeros and do not decay.
struct Indexer {
  Compressor keys;   ///< entries of its head's size
  Linear q;          ///< [heads size, rank of the attention's queries]
  Linear weights;    ///< [heads, C]
  std::int64_t top;  ///< how many entries a query sees

  Indexer(std::int64_t channels, std::int64_t query_rank, const CompressionSettings& settings, double norm_eps,
          Rng& rng, DType dtype);  ///< `query_rank` is that of the attention

  /// 1 where a query sees an entry, else 0: [B, T, n] i32, for x [B, T, C] from `position` on, the vectors `latent`
  /// [B, T, rank] from which attention makes its queries, and the entries [B, n, 1, size] that its `keys` have made.
  Tensor operator()(const Tensor& x, const Tensor& latent, const Tensor& entries, const RotaryTurns& turns,
                    std::int64_t position) const;
  /// A copy whose parameters are constants, so that a tape keeps nothing of it.
  Indexer constant() const;

  void params(auto&& visit) {
    visit("keys", keys);
    visit("q", q);
    visit("weights", weights);
  }
};

namespace detail {
/// The entries that a query at `position` may see: those of windows that it has left or ends.
inline std::int64_t closed_entries(std::int64_t position, std::int64_t rate, std::int64_t entries) {
  return std::min((position + 1) / rate, entries);
}
}  // namespace detail

}  // namespace braid::nn

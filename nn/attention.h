#pragma once
#include <optional>

#include <braid/autograd/ops/attention.h>
#include <braid/nn/compressor.h>
#include <braid/nn/kv_cache.h>
#include <braid/nn/linear.h>
#include <braid/nn/norm.h>
#include <braid/nn/rotary.h>

namespace braid::nn {

/// Settings of MultiHeadAttention.
struct AttentionSettings {
  bool bias = false;                  ///< whether q, k, v and o have one
  bool rotary = false;                ///< rotates queries and keys by their positions
  double rotary_base = 10000;         ///< base of the angles, see rotary_embedding
  double rotary_share = 1;            ///< part of a head, from its start, that is rotated
  RotaryScaling rotary_scaling = {};  ///< stretches these angles for longer contexts
  RotaryLayout rotary_layout = RotaryLayout::adjacent;
  bool rotary_trailing = false;      ///< rotates the last part of a head instead of the first
  std::optional<int> kv_heads = {};  ///< heads of keys and values, each shared by several queries; by default `heads`
  std::optional<std::int64_t> head_size = {};        ///< by default channels / heads
  std::optional<std::int64_t> memory_channels = {};  ///< of the memory that keys and values read; by default channels
  bool qk_norm = false;         ///< normalizes each head's query and key by an RMSNorm, arXiv:2302.05442
  double norm_eps = 1e-5;       ///< eps of these norms
  bool causal = true;           ///< positions see none after their own
  std::int64_t window = 0;      ///< if positive: only the last `window` positions, their own included
  double scale = 0;             ///< of the scores; 0: 1 / sqrt(D)
  double softcap = 0;           ///< if positive, the bound of the scores, see AttentionOptions
  bool sinks = false;           ///< a learned score per head that takes weight from all keys
  bool alibi = false;           ///< scores fall with the distance, arXiv:2108.12409
  double dropout = 0;           ///< probability with which a weight is dropped in training
  bool value_residual = false;  ///< mixes in the values of the network's first attention, arXiv:2410.17897
  /// Values are the keys, after their norm and rotation, and what attention mixes is turned back, so that it depends on
  /// distances alone; the norm of queries has no weight. As in DeepSeek-V4.
  bool shared_kv = false;
  std::int64_t query_rank = 0;  ///< if positive, queries come from a vector of this size and its RMSNorm, as DeepSeek's
  int output_groups = 0;  ///< if positive, each such part of the heads passes output_rank channels on its way to o
  std::int64_t output_rank = 0;  ///< see output_groups
  /// Entries that are seen beside the window. Needs shared_kv, kv_heads = 1 and rotary positions, an indexer also
  /// query_rank.
  CompressionSettings compression = {};
  DType dtype = DType::f32;
};

/// What a call of MultiHeadAttention gets beside x.
struct AttentionCall {
  Var memory = {};     ///< [B, S, memory_channels]: keys and values come from it instead of x; never for causal ones
  Tensor mask = {};    ///< broadcasts to [B, heads, T, S], see AttentionOptions
  Rng* rng = nullptr;  ///< source of dropout; without one, as in evaluation, nothing is dropped
  Var* first_values = nullptr;  ///< [B, S, kv_heads, D] of the network's first attention, which sets them
};

namespace detail {
/// The settings with kv_heads and head_size set. Throws ValueError, naming `module`, as MultiHeadAttention does.
AttentionSettings complete(const char* module, std::int64_t channels, int heads, AttentionSettings settings);
}  // namespace detail

/// Multi-head attention, x [B, T, C] -> [B, T, C]: each head of D = C / heads channels mixes the values of the
/// positions up to its own, or of all of them, or of another sequence, with weights softmax(q k^T / sqrt(D)).
///
///     nn::MultiHeadAttention decoder(64, 4, rng), encoder(64, 4, rng, {.causal = false});
///     y = decoder(x);
///     y = encoder(x, {.mask = is_word});            // [B, 1, 1, T] i32
///     y = cross(x, {.memory = encoded, .rng = &rng});  // in training, with {.causal = false, .dropout = 0.1}
///
/// arXiv:1706.03762; grouped queries: arXiv:2305.13245.
struct MultiHeadAttention {
  int heads;                              ///< of queries
  AttentionSettings settings;             ///< with kv_heads and head_size set
  Linear q, k, v, o;                      ///< [heads D, C], twice [kv_heads D, C], [C, heads D]; shared_kv has no v
  std::optional<RMSNorm> q_norm, k_norm;  ///< [D], qk_norm only; shared_kv has no q_norm
  Var sinks;                              ///< [heads], zeros at the start; only with that setting
  std::optional<Linear> q_down;           ///< [query_rank, C]; q is then [heads D, query_rank]
  std::optional<RMSNorm> q_down_norm;     ///< [query_rank]
  std::optional<GroupedLinear> o_down;    ///< output_groups; o is then [C, output_groups output_rank]
  std::optional<Compressor> compressor;   ///< compression only
  std::optional<Indexer> indexer;         ///< compression with index_top only
  Var value_weights;  ///< [2], of the first and own values, halves at the start; value_residual only

  /// Throws ValueError unless `heads` divides `channels` or there is a head_size, kv_heads and output_groups divide
  /// `heads`, and the part of a head that is rotated has an even size, for options that AttentionOptions refuses, and
  /// for compression or shared_kv without what they need.
  MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& settings = {});

  std::int64_t head_size() const { return *settings.head_size; }  ///< D
  /// Throws ShapeError unless x is [B, T, C], ValueError for a memory in a causal module, and for a mask in one with
  /// compression.
  Var operator()(const Var& x, const AttentionCall& call = {}) const;
  /// The same for x that continues sequences at `position`: the cache has the keys and values of earlier positions and
  /// gets those of x; with a window it keeps no more than that needs. No gradient flows through the cache, and nothing
  /// is dropped. `first_values` as in an AttentionCall. Throws as check_cache() does, and
  /// ShapeError unless x is [B, T, C].
  Var operator()(const Var& x, LayerCache& cache, std::int64_t position, Var* first_values = nullptr) const;
  /// Throws ValueError in a module that is not causal, and when the cache has forgotten what `position` sees.
  void check_cache(const LayerCache& cache, std::int64_t position) const;

  void params(auto&& visit) {
    visit("q", q);
    visit("k", k);
    if (!settings.shared_kv) visit("v", v);
    visit("o", o);
    if (q_norm) visit("q_norm", *q_norm);
    if (k_norm) visit("k_norm", *k_norm);
    if (sinks.value().defined()) visit("sinks", sinks);
    visit("q_down", q_down);
    visit("q_down_norm", q_down_norm);
    visit("o_down", o_down);
    visit("compressor", compressor);
    visit("indexer", indexer);
    if (settings.value_residual) visit("value_weights", value_weights);
  }
};

}  // namespace braid::nn

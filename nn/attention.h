#pragma once
#include <array>
#include <optional>

#include <braid/autograd/ops/attention.h>
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
  std::optional<int> kv_heads = {};  ///< heads of keys and values, each shared by several queries; by default `heads`
  std::optional<std::int64_t> head_size = {};        ///< by default channels / heads
  std::optional<std::int64_t> memory_channels = {};  ///< of the memory that keys and values read; by default channels
  bool qk_norm = false;     ///< normalizes each head's query and key by an RMSNorm, arXiv:2302.05442
  double norm_eps = 1e-5;   ///< eps of these norms
  bool causal = true;       ///< positions see none after their own
  std::int64_t window = 0;  ///< if positive: only the last `window` positions, their own included
  double scale = 0;         ///< of the scores; 0: 1 / sqrt(D)
  double softcap = 0;       ///< if positive, the bound of the scores, see AttentionOptions
  bool sinks = false;       ///< a learned score per head that takes weight from all keys
  bool alibi = false;       ///< scores fall with the distance, arXiv:2108.12409
  double dropout = 0;       ///< probability with which a weight is dropped in training
  DType dtype = DType::f32;
};

/// What a call of MultiHeadAttention gets beside x.
struct AttentionCall {
  Var memory = {};     ///< [B, S, memory_channels]: keys and values come from it instead of x; never for causal ones
  Tensor mask = {};    ///< see AttentionOptions
  Rng* rng = nullptr;  ///< source of dropout; without one, as in evaluation, nothing is dropped
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
  Linear q, k, v, o;                      ///< [heads D, C], twice [kv_heads D, C], [C, heads D]
  std::optional<RMSNorm> q_norm, k_norm;  ///< [D], qk_norm only
  Var sinks;                              ///< [heads], zeros at the start; only with that setting

  /// Throws ValueError unless `heads` divides `channels` or there is a head_size, kv_heads divides `heads`, and the
  /// part of a head that is rotated has an even size, and for options that AttentionOptions refuses.
  MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& settings = {});

  std::int64_t head_size() const { return *settings.head_size; }  ///< D
  /// Throws ValueError for a memory in a causal module.
  Var operator()(const Var& x, const AttentionCall& call = {}) const;
  /// The same for x that continues sequences at `position`: the cache has the keys and values of earlier positions and
  /// gets those of x; with a window it keeps no more than that needs. No gradient flows through the cache, and nothing
  /// is dropped. Throws ValueError in a module that is not causal.
  Var operator()(const Var& x, LayerCache& cache, std::int64_t position) const;

  void params(auto&& visit) {
    visit("q", q);
    visit("k", k);
    visit("v", v);
    visit("o", o);
    if (q_norm) visit("q_norm", *q_norm);
    if (k_norm) visit("k_norm", *k_norm);
    if (sinks.value().defined()) visit("sinks", sinks);
  }

 private:
  /// q, k and v: [B, T, heads, D] and twice [B, S, kv_heads, D].
  std::array<Var, 3> project(const Var& x, const Var& memory, std::int64_t position) const;
  AttentionOptions options() const;
  Var output(const Var& mixed) const;
};

}  // namespace braid::nn

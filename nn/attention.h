#pragma once
#include <optional>

#include <braid/autograd/ops/rotary_embedding.h>
#include <braid/nn/kv_cache.h>
#include <braid/nn/linear.h>
#include <braid/nn/norm.h>

namespace braid::nn {

/// Settings of MultiHeadAttention.
struct AttentionSettings {
  bool bias = false;           ///< whether q, k, v and o have one
  bool rotary = false;         ///< rotates queries and keys by their positions
  double rotary_base = 10000;  ///< base of the angles, see rotary_embedding
  RotaryLayout rotary_layout = RotaryLayout::adjacent;
  std::optional<int> kv_heads = {};  ///< heads of keys and values, each shared by several queries; by default `heads`
  std::optional<std::int64_t> head_size = {};  ///< by default channels / heads
  bool qk_norm = false;                        ///< normalizes each head's query and key by an RMSNorm, arXiv:2302.05442
  double norm_eps = 1e-5;                      ///< eps of these norms
  DType dtype = DType::f32;
};

namespace detail {
/// The settings with kv_heads and head_size set. Throws ValueError, naming `module`, as MultiHeadAttention does.
AttentionSettings complete(const char* module, std::int64_t channels, int heads, AttentionSettings settings);
}  // namespace detail

/// Causal multi-head self-attention, x [B, T, C] -> [B, T, C]: each head of D = C / heads channels mixes the values of
/// the positions up to its own with weights softmax(q k^T / sqrt(D)). arXiv:1706.03762; grouped queries:
/// arXiv:2305.13245.
struct MultiHeadAttention {
  int heads;                              ///< of queries
  AttentionSettings settings;             ///< with kv_heads and head_size set
  Linear q, k, v, o;                      ///< [heads D, C], twice [kv_heads D, C], [C, heads D]
  std::optional<RMSNorm> q_norm, k_norm;  ///< [D], qk_norm only

  /// Throws ValueError unless `heads` divides `channels` or there is a head_size, kv_heads divides `heads`, and with
  /// `rotary` heads have an even size.
  MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& settings = {});

  std::int64_t head_size() const { return *settings.head_size; }  ///< D
  Var operator()(const Var& x) const;
  /// The same for x that continues sequences at `position`: the cache has the keys and values of earlier positions and
  /// gets those of x. No gradient flows through the cache.
  Var operator()(const Var& x, LayerCache& cache, std::int64_t position) const;

  void params(auto&& visit) {
    visit("q", q);
    visit("k", k);
    visit("v", v);
    visit("o", o);
    if (q_norm) visit("q_norm", *q_norm);
    if (k_norm) visit("k_norm", *k_norm);
  }

 private:
  struct Projected {
    Var q, k, v;  // [B, T, heads, D], twice [B, T, kv_heads, D]
  };

  Projected project(const Var& x, std::int64_t position) const;
  Var output(const Var& mixed) const;
};

}  // namespace braid::nn

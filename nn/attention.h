#pragma once
#include <braid/nn/linear.h>

namespace braid::nn {

struct AttentionSettings {
  bool bias = false;
  bool rotary = false;  ///< rotates queries and keys by their positions
  double rotary_base = 10000;
  DType dtype = DType::f32;
};

/// Causal multi-head self-attention, x [B, T, C] -> [B, T, C]: each head of C / heads channels mixes the values of the
/// positions up to its own with weights softmax(q k^T / sqrt(C / heads)). arXiv:1706.03762.
struct MultiHeadAttention {
  int heads;
  bool rotary;
  double rotary_base;
  Linear q, k, v, o;  // each [C, C]

  /// Throws ValueError unless `heads` divides `channels`, and with `rotary` into heads of an even size.
  MultiHeadAttention(std::int64_t channels, int heads, Rng& rng, const AttentionSettings& settings = {});

  Var operator()(const Var& x) const;

  void params(auto&& visit) {
    visit("q", q);
    visit("k", k);
    visit("v", v);
    visit("o", o);
  }
};

}  // namespace braid::nn

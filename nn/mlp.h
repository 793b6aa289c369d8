#pragma once
#include <optional>

#include <braid/nn/linear.h>

namespace braid::nn {

/// The activation between the maps of an MLP.
enum class Activation {
  gelu,      ///< tanh approximation
  gelu_erf,  ///< the exact form
  relu,      ///< max(x, 0)
  swiglu,    ///< with a gate, arXiv:2002.05202
  geglu,     ///< likewise, by the tanh approximation of gelu
};

/// Settings of MLP.
struct MLPSettings {
  Activation activation = Activation::gelu;
  bool bias = true;  ///< whether the maps have one
  double limit = 0;  ///< of gated ones, if positive: gates are at most this, and what they multiply lies in +-limit
  DType dtype = DType::f32;

  bool operator==(const MLPSettings&) const = default;  ///< all equal
};

/// The feed-forward layer of a transformer, x [..., C] -> [..., C] with `hidden` channels inside:
/// `down(activation(up(x)))`; swiglu: `down(silu(gate(x)) * up(x))`, geglu: `down(gelu(gate(x)) * up(x))`.
struct MLP {
  Activation activation;
  double limit;                ///< see MLPSettings
  Linear up, down;             ///< [hidden, C], [C, hidden]
  std::optional<Linear> gate;  ///< [hidden, C], swiglu and geglu only

  /// Throws ValueError unless channels and hidden are at least 1, and for a limit that is negative or without a gate.
  MLP(std::int64_t channels, std::int64_t hidden, Rng& rng, const MLPSettings& settings = {});

  Var operator()(const Var& x) const;  ///< x [..., C] -> [..., C]

  void params(auto&& visit) {
    visit("up", up);
    if (gate) visit("gate", *gate);
    visit("down", down);
  }
};

}  // namespace braid::nn

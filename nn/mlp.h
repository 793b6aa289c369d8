#pragma once
#include <optional>

#include <braid/nn/linear.h>

namespace braid::nn {

enum class Activation { gelu, swiglu };

struct MLPSettings {
  Activation activation = Activation::gelu;
  bool bias = true;
  DType dtype = DType::f32;
};

/// The feed-forward layer of a transformer, x [..., C] -> [..., C] by `hidden` channels:
/// gelu: `down(gelu(up(x)))`, tanh approximation; swiglu: `down(silu(gate(x)) * up(x))`, arXiv:2002.05202.
struct MLP {
  Linear up, down;             // [hidden, C], [C, hidden]
  std::optional<Linear> gate;  // [hidden, C], swiglu only

  MLP(std::int64_t channels, std::int64_t hidden, Rng& rng, const MLPSettings& settings = {});

  Var operator()(const Var& x) const;

  void params(auto&& visit) {
    visit("up", up);
    if (gate) visit("gate", *gate);
    visit("down", down);
  }
};

}  // namespace braid::nn

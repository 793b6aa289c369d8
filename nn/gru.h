#pragma once
#include <braid/nn/linear.h>

namespace braid::nn {

/// A gated recurrent unit over a sequence, with PyTorch's equations (arXiv:1406.1078):
///
///     r = sigmoid(x_r + h_r), z = sigmoid(x_z + h_z), n = tanh(x_n + r h_n), h = (1 - z) n + z h
///
/// where x_* and h_* are the thirds of `input(x)` and `hidden(h)`. Weights and biases start from
/// U(-1/sqrt(size), 1/sqrt(size)).
struct GRU {
  Linear input;   ///< [3 size, in]
  Linear hidden;  ///< [3 size, size]

  /// Throws ValueError unless in and size are at least 1.
  GRU(std::int64_t in, std::int64_t size, Rng& rng, const LinearSettings& settings = {});

  /// x [B, T, in], state [B, size] -> all states [B, T, size]; without a state, from zeros. The last one continues the
  /// sequence. Throws ShapeError when they do not fit.
  Var operator()(const Var& x, const Var& state = {}) const;

  void params(auto&& visit) {
    visit("input", input);
    visit("hidden", hidden);
  }
};

}  // namespace braid::nn

#pragma once
#include <cmath>
#include <vector>

#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/repeat.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/softmax.h>
#include <braid/mhc/connections/residual_connection.h>
#include <braid/mhc/ops/weighted_sum.h>

namespace braid::mhc {

/// A learned augmented residual layer, LAuReL-RW+LR of arXiv:2411.07501: a map of low rank r is added to the state, and
/// the layer and the state have weights. x [..., C] -> [..., C]:
///
///     y = alpha layer(x) + beta (x + up down x)    (alpha, beta) = 2 softmax(logits)
///
/// The paper wants bounded weights and leaves the bound open; with this one it starts as the residual connection. Gemma
/// 3n's LAuReL is another form: it maps the normed input of attention and has no weights.
struct LaurelConnection : ResidualConnection {
  Var logits;  ///< [2], zeros at the start
  Var down;    ///< [r, C], at the start 1 / sqrt(r C) in row i of the columns i, i + r, ..
  Var up;      ///< [C, r], zeros at the start

  /// Throws ValueError unless rank is in [1, channels].
  explicit LaurelConnection(std::int64_t channels, std::int64_t rank = 4, DType dtype = DType::f32) {
    check_value(1 <= rank && rank <= channels, "LaurelConnection: rank must be in [1, {}], the channels, but is {}",
                channels, rank);
    logits = zeros({2}, dtype);
    down = slice(repeat(eye(rank, dtype), {1, channels / rank + 1}), 1, 0, channels) /
           std::sqrt(static_cast<double>(rank * channels));
    up = zeros({channels, rank}, dtype);
  }

  /// `layer` maps [..., C] to [..., C]. Throws ShapeError unless it does.
  Var operator()(const Var& x, auto&& layer) const {
    const Var f = layer(x), weights = 2 * softmax(logits), beta = slice(weights, 0, 1, 2);
    check_shape(f.shape() == x.shape(), "LaurelConnection: layer must keep the shape {} but returned {}", x.shape(),
                f.shape());
    if (ConnectionHook* hook = ConnectionHook::active())  // up down mixes channels, not streams
      hook->record({ones({1}, beta.dtype()), slice(weights, 0, 0, 1), reshape(beta, {1, 1}), /*gated=*/false},
                   expand_dims(x, -2));
    return weighted_sum(linear(linear(x, down), beta * up), weights, std::vector{f, x});
  }

  void params(auto&& visit) {
    visit("logits", logits);
    visit("down", down);
    visit("up", up);
  }
};

}  // namespace braid::mhc

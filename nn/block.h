#pragma once
#include <concepts>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/nn/attention.h>
#include <braid/nn/experts.h>
#include <braid/nn/norm.h>

namespace braid::nn {

/// The plain connection around a sublayer, `x + layer(x)`.
///
/// A connection defines the state between the sublayers of a transformer (its Stream), how the embedding opens it, how
/// one sublayer acts on it, and how it closes into the head's input. Hyper-connections have this interface too.
struct Residual {
  using Stream = Var;  ///< [B, T, C]

  Var open(const Var& embedding) const { return embedding; }                 ///< embedding [B, T, C] -> [B, T, C]
  Var operator()(const Var& x, auto&& layer) const { return x + layer(x); }  ///< `layer` keeps the shape of x
  Var close(const Var& x) const { return x; }                                ///< x [B, T, C] -> [B, T, C]

  void params(auto&&) {}
};

/// A connection around a body behind a norm: `sublayer(x, rest..)` is `connection(x, layer)` for the layer
/// `h -> body(norm(h), rest..)`. What follows x, such as a mask, a cache or the states of an encoder, reaches the body
/// as it is, whatever the connection:
///
///     nn::Sublayer<nn::MultiHeadAttention, mhc::ManifoldConstrainedHC> cross{norm, attention, connection};
///     x = cross(x, nn::AttentionCall{.memory = encoded});
///
/// The body's parameters keep their names, without a prefix.
template <class Body, class Connection>
struct Sublayer {
  Norm norm;
  Body body;
  Connection connection;
  std::optional<Norm> post_norm = {};  ///< of what the body gives, as Gemma 2 has it

  /// x is the connection's Stream, and so is the result.
  auto operator()(const typename Connection::Stream& x, auto&&... rest) const {
    return connection(x, [&](const Var& h) {
      const Var y = body(norm(h), rest...);
      return post_norm ? (*post_norm)(y) : y;
    });
  }

  void params(auto&& visit) {
    visit("norm", norm);
    body.params(visit);
    visit("connection", connection);
    visit("post_norm", post_norm);
  }
};

/// A pre-norm transformer block: attention, then the MLP or experts, each after its norm and inside its connection.
///
///     nn::TransformerBlock<> block{{nn::RMSNorm(64), nn::MultiHeadAttention(64, 4, rng), {}},
///                                  {nn::RMSNorm(64), nn::MLP(64, 256, rng), {}}};
template <class Connection = Residual>
struct TransformerBlock {
  Sublayer<MultiHeadAttention, Connection> attention;  ///< the first sublayer
  Sublayer<FeedForward, Connection> mlp;               ///< the second

  /// What follows x goes to the attention: an AttentionCall, or a cache and the position at which x continues.
  auto operator()(const typename Connection::Stream& x, auto&&... rest) const { return mlp(attention(x, rest...)); }
  /// The same with the token ids of x for experts that a table names.
  auto operator()(const typename Connection::Stream& x, std::convertible_to<Tensor> auto&& tokens,
                  auto&&... rest) const {
    return mlp(attention(x, rest...), tokens);
  }

  void params(auto&& visit) {
    visit("attention", attention);
    visit("mlp", mlp);
  }
};

}  // namespace braid::nn

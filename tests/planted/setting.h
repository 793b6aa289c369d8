#pragma once
#include <string_view>

#include <braid/autograd/verify/gradcheck.h>
#include <braid/mhc/connection.h>
#include <braid/nn/transformer.h>

namespace braid::planted {

/// Of every mHC map here, that errors by hand can be written for them.
inline constexpr int kSinkhornIterations = 3;
inline constexpr std::int64_t kStreams = 4, kChannels = 8;
inline constexpr double kEps = 1e-6;

/// Token ids [2, 4], some of them repeated.
Tensor tokens();

/// One op on its own, or as few as it can be recorded with.
struct Alone {
  std::string_view op;
  std::vector<Shape> shapes;  // of the inputs of f
  GradcheckFunction f;
};

/// Throws ValueError when there is none for this op.
const Alone& alone(std::string_view op);
/// Its inputs, the same in every call.
std::vector<Tensor> inputs_of(const Alone& alone);

/// An mHC connection around a sublayer, followed by some more ops: each sublayer has others, so that the
/// transformer has all ops that errors are planted in. Every fourth sublayer has the static maps of mhc::MHCLayer.
struct Detour {
  using Stream = mhc::Connection::Stream;

  int index;             // of the sublayer
  bool with_primitives;  // those that nothing else here is made of
  mhc::Connection connection;
  Var vector, matrix;  // [C], [C, C]

  Detour(int index, bool with_primitives, Rng& rng);

  Stream open(const Var& embedding) const { return connection.open(embedding); }
  Stream operator()(const Stream& stream, auto&& layer) const {
    return connection(stream, [&](const Var& u) { return detour(layer(u)); });
  }
  Var close(const Stream& stream) const { return connection.close(stream); }

  void params(auto&& visit) {
    visit("connection", connection);
    visit("vector", vector);
    visit("matrix", matrix);
  }

 private:
  Var detour(const Var& x) const;
  Var primitives(const Var& x) const;
};

using Transformer = nn::Transformer<Detour>;

/// 6 layers, fused path, all parameters random.
Transformer transformer();
/// 2 layers, in which every op with a rule runs when fused ones run their composed forms.
Transformer transformer_of_primitives();
/// Its loss on tokens().
Var loss(const Transformer& model);

}  // namespace braid::planted

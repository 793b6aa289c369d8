// What a stream is worth to a network: a hook sets it to zero in front of every layer.
#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

/// While one is alive, every connection of its thread finds zeros in one stream.
struct WithoutStream : mhc::ConnectionHook {
  Tensor mask;  // [n, 1]

  WithoutStream(std::int64_t stream, std::int64_t streams)
      : mask((ones({streams, 1}) - eye(streams).select(0, stream).reshape({streams, 1})).value()) {}

  mhc::LayerRead read(mhc::StreamState& x, const Read& read) override {
    x.last.x = x.settle() * mask;  // the streams [..., n, C] after the last layer's write
    return read(x);                // the maps follow the changed streams
  }
};

void run() {
  Rng rng(1);
  const std::int64_t streams = 4;
  const nn::Transformer<mhc::ManifoldConstrainedHC> model({.vocab = 50, .channels = 32, .layers = 3}, rng, [&](int) {
    return mhc::ManifoldConstrainedHC(32, streams, rng, {.phi_std = 0.5, .alpha = 1});
  });
  const Tensor tokens = Tensor::of<std::int32_t>({1, 6}, {3, 1, 4, 1, 5, 9});
  const Tensor logits = model.logits(tokens);
  for (std::int64_t stream = 0; stream < streams; ++stream) {
    const WithoutStream hook(stream, streams);
    const Tensor change = abs(model.logits(tokens) - Var(logits)).value();
    fmt::print("without stream {} logits change by up to {:.3f}\n", stream, reduce_max(change).item());
  }
}

int main(int argc, char** argv) {
  return apps::run_main("ablation", "How to change what passes through connections.", argc, argv, run);
}

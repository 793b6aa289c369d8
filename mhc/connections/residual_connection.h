#pragma once
#include <braid/autograd/ops/reshape.h>
#include <braid/mhc/streams/streams.h>
#include <braid/nn/block.h>

namespace braid::mhc {

/// The residual connection, `x + layer(x)`: the baseline. x [..., C] -> [..., C]. arXiv:1512.03385. An
/// nn::Residual that a ConnectionHook sees.
struct ResidualConnection : nn::Residual {
  /// `layer` maps [..., C] to [..., C].
  Var operator()(const Var& x, auto&& layer) const {
    if (ConnectionHook::active() == nullptr) return nn::Residual::operator()(x, layer);
    Streams stream(expand_dims(x, -2));  // one, for the hook
    stream.write(layer(stream.read(identity_maps(compute_dtype(x.dtype())))));
    return squeeze(stream.value(), -2);
  }

  /// One stream that is passed on as it is.
  static StreamMaps identity_maps(DType dtype) {
    return {ones({1}, dtype), ones({1}, dtype), eye(1, dtype), /*gated=*/false};
  }
};

}  // namespace braid::mhc

#pragma once
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/mhc/streams/streams.h>

namespace braid::mhc {

/// The residual connection, `x + layer(x)`: the baseline. x [..., C] -> [..., C]. arXiv:1512.03385.
struct ResidualConnection {
  using Stream = Var;

  Var open(const Var& embedding) const { return embedding; }
  Var operator()(const Var& x, auto&& layer) const {
    if (ConnectionHook::active() == nullptr) return x + layer(x);
    Streams stream(expand_dims(x, -2));  // one, for the hook
    stream.write(layer(stream.read(identity_maps(compute_dtype(x.dtype())))));
    return squeeze(stream.value(), -2);
  }
  Var close(const Var& x) const { return x; }

  void params(auto&&) {}

  /// One stream that is passed on as it is.
  static StreamMaps identity_maps(DType dtype) {
    return {ones({1}, dtype), ones({1}, dtype), eye(1, dtype), /*gated=*/false};
  }
};

}  // namespace braid::mhc

#pragma once
#include <cmath>

#include <braid/autograd/ops/cast.h>
#include <braid/mhc/connections/residual_connection.h>

namespace braid::mhc {

/// LayerScale, arXiv:2103.17239, as CaiT and DINOv2 have it: `x + scale layer(x)` with a learned factor for each
/// channel. With one factor for all of them, 0 at the start, it is ReZero, arXiv:2003.04887: there the layer's
/// parameters have no gradient in the first step. x [..., C] -> [..., C].
struct LayerScale : ResidualConnection {
  Var scale;  ///< [C] or [1]

  /// `factors` is the number of channels or 1. Throws ValueError unless factors >= 1 and `initial` is finite.
  explicit LayerScale(std::int64_t factors, double initial = 0.1, DType dtype = DType::f32) {
    check_value(factors >= 1 && std::isfinite(initial),
                "LayerScale: factors must be >= 1 and initial finite but they are {} and {}", factors, initial);
    scale = full({factors}, initial, dtype);
  }

  /// `layer` maps [..., C] to [..., C]. Throws ShapeError unless it keeps the shape, and scale fits it.
  Var operator()(const Var& x, auto&& layer) const {
    return ResidualConnection::operator()(x, [&](const Var& h) {
      const Var f = layer(h), scaled = cast(cast(f, scale.dtype()) * scale, f.dtype());
      check_shape(f.shape() == h.shape() && scaled.shape() == h.shape(),
                  "LayerScale: layer must keep the shape {}, which scale {} must fit, but returned {}", h.shape(),
                  scale.shape(), f.shape());
      return scaled;
    });
  }

  void params(auto&& visit) { visit("scale", scale); }
};

}  // namespace braid::mhc

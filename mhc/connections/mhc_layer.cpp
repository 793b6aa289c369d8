#include <braid/mhc/connections/mhc_layer.h>

#include <braid/autograd/ops.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/ops/mhc_layer.h>

namespace braid::mhc {

MHCLayer::MHCLayer(std::int64_t n, std::int64_t channels, const MHCLayerSettings& settings) : settings(settings) {
  check_value(n >= 1, "MHCLayer: streams must be >= 1 but is {}", n);
  check_value(channels >= 1, "MHCLayer: channels must be >= 1 but is {}", channels);
  check_value(settings.sinkhorn_iterations >= 1, "MHCLayer: sinkhorn_iterations must be >= 1 but is {}",
              settings.sinkhorn_iterations);
  rms_weight = ones({channels}, settings.dtype);
  if (settings.init == MHCLayerInit::residual) {
    const Tensor start = residual_like_bias(Mixing("sinkhorn", n), settings.dtype);
    h_pre_raw = start.slice(0, 0, n).clone();
    h_post_raw = start.slice(0, n, 2 * n).clone();
    h_res_raw = start.slice(0, 2 * n, n * (n + 2)).reshape({n, n}).clone();
  } else {
    h_pre_raw = full({n}, -12, settings.dtype);
    h_post_raw = full({n}, -12, settings.dtype);
    h_res_raw = (12 * Var(eye(n, settings.dtype)) - 12).value();
  }
}

Var MHCLayer::mixing_matrix() const {
  return mixing_cache_.get({h_res_raw, full({}, settings.sinkhorn_iterations)},
                           [&] { return sinkhorn_knopp(h_res_raw, settings.sinkhorn_iterations, Marginal::columns); });
}

StreamMaps MHCLayer::maps() const { return {sigmoid(h_pre_raw), 2 * sigmoid(h_post_raw), mixing_matrix()}; }

Var MHCLayer::operator()(const Var& x) const {
  check_streams("MHCLayer", x.shape(), streams(), channels());
  const StreamMaps m = maps();
  if (ConnectionHook* hook = ConnectionHook::active()) hook->record(m, x);
  return mhc_layer(m.h_pre, m.h_post, m.h_res, rms_weight, x, settings.eps);
}

Var MHCLayer::read(Streams& x) const {
  check_streams("MHCLayer", x.shape(), streams(), channels());
  return rms_norm(x.read(maps()), rms_weight, settings.eps);
}

Var FlatMHCLayer::operator()(const Var& x) const {
  const std::int64_t n = layer.streams(), channels = layer.channels();
  check_shape(x.rank() >= 1 && x.size(-1) == n * channels, "FlatMHCLayer: x must have shape [..., {} x {}] but has {}",
              n, channels, x.shape());
  const Shape lead = x.shape().axes(0, x.rank() - 1);
  return reshape(layer(reshape(x, lead.concat({n, channels}))), x.shape());
}

}  // namespace braid::mhc

#include <braid/mhc/connections/hyper_connection.h>

#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/reshape.h>

namespace braid::mhc {

HyperConnection::HyperConnection(std::int64_t channels, std::int64_t streams, std::int64_t layer_index,
                                 const HyperConnectionSettings& settings)
    : channels(channels), settings(settings) {
  check_value(channels >= 1, "HyperConnection: channels must be >= 1 but is {}", channels);
  check_value(streams >= 1, "HyperConnection: streams must be >= 1 but is {}", streams);
  check_value(layer_index >= 0, "HyperConnection: layer_index must be >= 0 but is {}", layer_index);
  const DType dtype = settings.dtype;
  if (settings.dynamic) {
    theta_pre = zeros({channels}, dtype);
    theta_post = zeros({channels}, dtype);
    theta_res = zeros({streams, channels}, dtype);
    alpha = full({3}, 0.01, dtype);
  }
  b_pre = eye(streams, dtype).select(0, layer_index % streams).clone();
  b_post = ones({streams}, dtype);
  b_res = eye(streams, dtype);
}

StreamMaps HyperConnection::maps(const Var& x) const {
  check_streams("HyperConnection", x.shape(), streams(), channels);
  if (settings.dynamic) return compose_maps(dynamic_maps(), x);
  return {.h_pre = b_pre, .h_post = b_post, .h_res = b_res, .gated = false};
}

Var HyperConnection::read(Streams& x) const {
  check_streams("HyperConnection", x.shape(), streams(), channels);
  return settings.dynamic ? x.read(dynamic_maps()) : x.read(maps(x.settle()));
}

HyperMaps HyperConnection::dynamic_maps() const {
  return {.theta = concat({expand_dims(theta_pre, 0), expand_dims(theta_post, 0), theta_res}, 0),
          .alpha = alpha,
          .bias = concat({b_pre, b_post, reshape(b_res, {b_res.value().numel()})}, 0),
          .eps = settings.eps};
}

}  // namespace braid::mhc

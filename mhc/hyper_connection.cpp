#include <braid/mhc/hyper_connection.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/cast.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/rms_norm.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/autograd/ops/transpose.h>

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
  const std::int64_t n = streams();
  check_streams("HyperConnection", x.shape(), n, channels);
  if (!settings.dynamic) return {b_pre, b_post, b_res, /*gated=*/false};
  // [..., n, 2 + n]: one product for all three maps
  const Var t = tanh(linear(rms_norm(cast(x, alpha.dtype()), settings.eps), theta()));
  const auto a = [&](int map) { return slice(alpha, 0, map, map + 1); };
  return {a(0) * squeeze(slice(t, -1, 0, 1), -1) + b_pre, a(1) * squeeze(slice(t, -1, 1, 2), -1) + b_post,
          a(2) * transpose(slice(t, -1, 2, 2 + n)) + b_res, /*gated=*/false};
}

Var HyperConnection::read(Streams& x) const {
  const std::int64_t n = streams();
  check_streams("HyperConnection", x.shape(), n, channels);
  if (!settings.dynamic || settings.path == Path::reference) return x.read(maps(x.settle()), settings.path);
  const Var bias = concat({b_pre, b_post, reshape(b_res, {n * n})}, 0);
  return x.read(HyperMaps{theta(), alpha, bias, settings.eps});
}

Var HyperConnection::theta() const {
  return concat({expand_dims(theta_pre, 0), expand_dims(theta_post, 0), theta_res}, 0);
}

}  // namespace braid::mhc

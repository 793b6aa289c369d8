#include <braid/mhc/connections/released/released_connection.h>

#include <utility>

#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/nn/init.h>

namespace braid::mhc {

ReleasedConnection::ReleasedConnection(const char* op, CheckpointMaps maps_in, std::int64_t channels, Rng& rng,
                                       const ReleasedSettings& s)
    : maps(std::move(maps_in)), channels(channels), settings(s) {
  check_value(s.keep_every >= 1, "{}: keep_every must be >= 1 but is {}", op, s.keep_every);
  check_value(channels >= 1, "{}: channels must be >= 1 but is {}", op, channels);
  check_value(maps.pre_eps >= 0, "{}: hc_eps must be >= 0 but is {}", op, maps.pre_eps);
  check_value(maps.norm_eps >= 0, "{}: norm_eps must be >= 0 but is {}", op, maps.norm_eps);
  check_value(s.fn_std >= 0, "{}: fn_std must be >= 0 but is {}", op, s.fn_std);
  const std::int64_t rows = 2 * streams() + maps.mixing.logits();
  const bool published = s.init == ReleasedInit::published;
  const double std = published ? 0.02 : s.fn_std;
  const Shape shape{rows, streams() * channels};
  maps.fn = std > 0 ? nn::init::normal(shape, std, rng, s.dtype) : zeros(shape, s.dtype);
  maps.base = published ? zeros({rows}, s.dtype) : residual_like_bias(maps.mixing, s.dtype);
  maps.scale = full({maps.mixing.logits() > 0 ? 3 : 2}, published ? 1 : s.scale, s.dtype);
}

Var ReleasedConnection::read(Streams& x) const {
  check_streams("ReleasedConnection", x.shape(), streams(), channels);
  return x.read(maps.maps());
}

ReleasedConnection deepseek_v4(std::int64_t channels, std::int64_t streams, Rng& rng, const ReleasedSettings& s) {
  const CheckpointMaps maps{
      .mixing = Mixing("sinkhorn", streams, {.iterations = s.sinkhorn_iterations, .eps = s.hc_eps}),
      .norm_eps = s.norm_eps,
      .pre_eps = s.hc_eps,
      .post_magnitude = s.post_magnitude};
  return {"deepseek_v4", maps, channels, rng, s};
}

ReleasedConnection hunyuan_v4(std::int64_t channels, std::int64_t streams, Rng& rng, const ReleasedSettings& s) {
  const CheckpointMaps maps{.mixing = Mixing("identity", streams),
                            .norm_eps = s.norm_eps,
                            .pre_eps = s.hc_eps,
                            .post_eps = s.hc_eps,
                            .post_magnitude = s.post_magnitude};
  return {"hunyuan_v4", maps, channels, rng, s};
}

}  // namespace braid::mhc

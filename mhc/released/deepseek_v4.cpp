#include <braid/mhc/released/deepseek_v4.h>

namespace braid::mhc {

DeepSeekV4Connection::DeepSeekV4Connection(std::int64_t channels, std::int64_t streams, Rng& rng,
                                           const DeepSeekV4Settings& s)
    : maps{.fn = {},
           .base = {},
           .scale = {},
           .mixing = Mixing("sinkhorn", streams, {.iterations = s.sinkhorn_iterations, .eps = s.hc_eps}),
           .norm_eps = s.norm_eps,
           .pre_eps = s.hc_eps,
           .post_magnitude = s.post_magnitude},
      channels(channels),
      settings(s) {
  check_value(s.keep_every >= 1, "DeepSeekV4Connection: keep_every must be >= 1 but is {}", s.keep_every);
  maps.initialize("DeepSeekV4Connection", channels, s.init, s.fn_std, s.scale, rng, s.dtype);
}

Var DeepSeekV4Connection::read(Streams& x) const {
  check_streams("DeepSeekV4Connection", x.shape(), streams(), channels);
  return x.read(maps.maps(), settings.path);
}

}  // namespace braid::mhc

#include <braid/mhc/released/hunyuan_v4.h>

namespace braid::mhc {

HunyuanV4Connection::HunyuanV4Connection(std::int64_t channels, std::int64_t streams, Rng& rng,
                                         const HunyuanV4Settings& s)
    : maps{.fn = {},
           .base = {},
           .scale = {},
           .mixing = Mixing("identity", streams),
           .norm_eps = s.norm_eps,
           .pre_eps = s.hc_eps,
           .post_eps = s.hc_eps,
           .post_magnitude = s.post_magnitude},
      channels(channels),
      settings(s) {
  check_value(s.keep_every >= 1, "HunyuanV4Connection: keep_every must be >= 1 but is {}", s.keep_every);
  maps.initialize("HunyuanV4Connection", channels, s.init, s.fn_std, s.scale, rng, s.dtype);
}

Var HunyuanV4Connection::read(Streams& x) const {
  check_streams("HunyuanV4Connection", x.shape(), streams(), channels);
  return x.read(maps.maps(), settings.path);
}

}  // namespace braid::mhc

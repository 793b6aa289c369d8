#include <braid/mhc/connections/released/gated_residual.h>

#include <braid/autograd/ops/concat.h>
#include <braid/nn/init.h>

namespace braid::mhc {

static GatedWeights starting_weights(const char* name, std::int64_t channels, std::int64_t streams, Rng& rng,
                                     const GatedResidualSettings& s) {
  check_value(channels >= 1, "{}: channels must be >= 1 but is {}", name, channels);
  check_value(streams >= 1, "{}: streams must be >= 1 but is {}", name, streams);
  check_value(s.rank >= 1, "{}: rank must be >= 1 but is {}", name, s.rank);
  check_value(s.std >= 0, "{}: std must be >= 0 but is {}", name, s.std);
  const std::int64_t width = streams * channels;
  const Tensor down = nn::init::normal({s.rank, width}, s.std, rng, s.dtype);
  return {zeros({width}, s.dtype), down, nn::init::normal({width, s.rank}, s.std, rng, s.dtype)};
}

GatedResidual::GatedResidual(std::int64_t channels, std::int64_t streams, Rng& rng,
                             const GatedResidualSettings& settings)
    : gates(starting_weights("GatedResidual", channels, streams, rng, settings)),
      inject(zeros({streams, streams * channels}, settings.dtype)),
      channels(channels),
      settings(settings) {}

Var GatedResidual::read(Streams& x) const {
  check_streams("GatedResidual", x.shape(), streams(), channels);
  const Var in = concat({gates.down, inject}, 0);  // one product for gates and post
  return x.read(GatedMaps{.norm = gates.norm, .in = in, .up = gates.up, .eps = settings.norm_eps});
}

GatedHead::GatedHead(std::int64_t channels, std::int64_t streams, Rng& rng, const GatedResidualSettings& settings)
    : gates(starting_weights("GatedHead", channels, streams, rng, settings)), channels(channels), settings(settings) {}

Var GatedHead::operator()(const Var& x) const {
  check_streams("GatedHead", x.shape(), streams(), channels);
  return gated_mean({.norm = gates.norm, .in = gates.down, .up = gates.up, .eps = settings.norm_eps}, x);
}

}  // namespace braid::mhc

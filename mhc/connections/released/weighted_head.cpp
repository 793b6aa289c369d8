#include <braid/mhc/connections/released/weighted_head.h>

#include <braid/autograd/ops.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>

namespace braid::mhc {

WeightedHead::WeightedHead(std::int64_t channels, std::int64_t streams, const WeightedHeadSettings& settings)
    : channels(channels), settings(settings) {
  check_value(channels >= 1, "WeightedHead: channels must be >= 1 but is {}", channels);
  check_value(streams >= 1, "WeightedHead: streams must be >= 1 but is {}", streams);
  const DType dtype = settings.dtype;
  fn = zeros({streams, streams * channels}, dtype);
  base = settings.softmax ? zeros({streams}, dtype) : mean_logits(streams, dtype);
  scale = full({1}, 0.01, dtype);
}

Var WeightedHead::operator()(Streams x) const {
  check_streams("WeightedHead", x.shape(), streams(), channels);
  const MHCMaps maps{.phi = transpose(fn),
                     .alpha = scale,
                     .bias = base,
                     .mixing = Mixing("identity", streams()),
                     .eps = settings.norm_eps,
                     .pre_eps = settings.hc_eps,
                     .reads_only = true};
  if (!settings.softmax) return x.read(maps);
  return read_streams(softmax(scale * detail::normalized_products(maps, x.settle()) + base), x.settle());
}

}  // namespace braid::mhc

#include <braid/mhc/connections/released/load_save.h>

#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/connections/released/checkpoint_maps.h>

namespace braid::mhc {

static CheckpointMaps as_in_checkpoint(const char* op, const ManifoldConstrainedHC& m) {
  check_value(m.mixing.name() == "sinkhorn", "{}: mixing must be sinkhorn but is {}", op, m.mixing.name());
  return {.fn = comb_transposed(transpose(m.phi), m.streams()),
          .base = comb_transposed(m.bias, m.streams()),
          .scale = m.alpha,
          .mixing = m.mixing,
          .norm_eps = m.settings.eps,
          .pre_eps = 0};
}

std::string connection_prefix(CheckpointNames names, std::int64_t layer, Sublayer sublayer) {
  const char* part = sublayer == Sublayer::attention ? "attn" : "ffn";
  return names == CheckpointNames::native ? fmt::format("layers.{}.hc_{}_", layer, part)
                                          : fmt::format("model.layers.{}.{}_hc.", layer, part);
}

std::string head_prefix(CheckpointNames names) {
  return names == CheckpointNames::native ? "hc_head_" : "model.hc_head.hc_";
}

void load_connection(const nn::NamedTensors& tensors, const std::string& prefix, ManifoldConstrainedHC& module) {
  CheckpointMaps own = as_in_checkpoint("load_connection", module);
  load_connection(tensors, prefix, own);
  const MHCMaps maps = own.maps();
  module.phi = maps.phi.value().contiguous();
  module.bias = maps.bias;
  module.alpha = maps.alpha;
}

void save_connection(nn::NamedTensors& tensors, const std::string& prefix, const ManifoldConstrainedHC& module) {
  save_connection(tensors, prefix, as_in_checkpoint("save_connection", module));
}

}  // namespace braid::mhc

#include <braid/mhc/connections/released/load_save.h>

#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/connections/released/checkpoint_maps.h>

namespace braid::mhc {
namespace {

/// mHC's parameters in a checkpoint's layout.
struct AsInCheckpoint {
  Var fn, base, scale;

  explicit AsInCheckpoint(const ManifoldConstrainedHC& m)
      : fn(comb_transposed(transpose(m.phi), m.streams())),
        base(comb_transposed(m.bias, m.streams())),
        scale(m.alpha) {}

  void params(auto&& visit) {
    visit("fn", fn);
    visit("base", base);
    visit("scale", scale);
  }
};

void check_mixing(const char* op, const ManifoldConstrainedHC& module) {
  check_value(module.mixing.name() == "sinkhorn", "{}: mixing must be sinkhorn but is {}", op, module.mixing.name());
}

}  // namespace

std::string connection_prefix(CheckpointNames names, std::int64_t layer, Sublayer sublayer) {
  const char* part = sublayer == Sublayer::attention ? "attn" : "ffn";
  return names == CheckpointNames::native ? fmt::format("layers.{}.hc_{}_", layer, part)
                                          : fmt::format("model.layers.{}.{}_hc.", layer, part);
}

std::string head_prefix(CheckpointNames names) {
  return names == CheckpointNames::native ? "hc_head_" : "model.hc_head.hc_";
}

void load_connection(const nn::NamedTensors& tensors, const std::string& prefix, ManifoldConstrainedHC& module) {
  check_mixing("load_connection", module);
  AsInCheckpoint own(module);
  load_connection(tensors, prefix, own);
  module.phi = transpose(comb_transposed(own.fn, module.streams())).value().contiguous();
  module.bias = comb_transposed(own.base, module.streams()).value();
  module.alpha = own.scale;
}

void save_connection(nn::NamedTensors& tensors, const std::string& prefix, const ManifoldConstrainedHC& module) {
  check_mixing("save_connection", module);
  save_connection(tensors, prefix, AsInCheckpoint(module));
}

}  // namespace braid::mhc

#include <braid/autograd/ops.h>
#include <braid/mhc/connections/laurel_connection.h>
#include <braid/mhc/connections/layer_scale.h>
#include <braid/nn/attention.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// tanh(h w).
auto tanh_layer(const CaseInputs& a) {
  return [w = a["w"]](const Var& h) { return tanh(linear(h, transpose(w))); };
}

Var layer_scale(const CaseInputs& a) {
  mhc::LayerScale module(size(a.settings, "factors"));
  nn::set_params(module, a);
  return module(a["x"], tanh_layer(a));
}

/// The paper's A and B are transposed.
Var laurel(const CaseInputs& a) {
  mhc::LaurelConnection module(a["x"].size(-1), size(a.settings, "rank"));
  module.logits = a["weights"];
  module.down = transpose(a["A"]);
  module.up = transpose(a["B"]);
  return module(a["x"], tanh_layer(a));
}

/// Two attentions in turn, a and b.
Var value_residual(const CaseInputs& a) {
  const auto module = [&](const std::string& name, bool mixes) {
    Rng unused;
    nn::MultiHeadAttention m(a["x"].size(-1), static_cast<int>(streams(a.settings, "heads")), unused,
                             {.kv_heads = static_cast<int>(streams(a.settings, "kv_heads")), .value_residual = mixes});
    nn::set_params(m, a, [&](const std::string& path) { return name + "." + path; });
    return m;
  };
  Var first;
  const Var h = module("a", false)(a["x"], {.first_values = &first});
  return module("b", true)(h, {.first_values = &first});
}

}  // namespace

std::vector<Module> forms_modules() {
  return {{"layer_scale", both_paths(layer_scale)},
          {"rezero", both_paths(layer_scale)},
          {"laurel", both_paths(laurel)},
          {"value_residual", {path("module", value_residual, InBF16::what_flows)}}};
}

}  // namespace braid::golden

#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/released/deepseek_v4.h>
#include <braid/mhc/released/gated_residual.h>
#include <braid/mhc/released/hunyuan_v4.h>
#include <braid/mhc/released/single_pass.h>
#include <braid/mhc/released/weighted_head.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// The layer inside: tanh(h w).
auto layer_of(const Var& w) {
  return [w](const Var& h) { return tanh(linear(h, transpose(w))); };
}

mhc::DeepSeekV4Settings deepseek_settings(const CaseInputs& a, mhc::Path path) {
  return {.sinkhorn_iterations = iterations(a.settings, "sinkhorn_iterations"),
          .hc_eps = a.settings.number("hc_eps"),
          .norm_eps = a.settings.number("norm_eps"),
          .path = path,
          .dtype = compute_dtype(a.dtype())};
}

Var deepseek_v4(const CaseInputs& a, mhc::Path path) {
  Rng rng;
  mhc::DeepSeekV4Connection module(size(a.settings, "dim"), streams(a.settings, "n"), rng, deepseek_settings(a, path));
  nn::set_params(module, a);
  return module(a["x"], layer_of(a["w"]));
}

Var hunyuan_v4(const CaseInputs& a, mhc::Path path) {
  Rng rng;
  mhc::HunyuanV4Connection module(size(a.settings, "dim"), streams(a.settings, "n"), rng,
                                  {.post_magnitude = a.settings.number("magnitude"),
                                   .hc_eps = a.settings.number("hc_eps"),
                                   .norm_eps = a.settings.number("norm_eps"),
                                   .path = path,
                                   .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module(a["x"], layer_of(a["w"]));
}

Var weighted_head(const CaseInputs& a, mhc::Path path) {
  mhc::WeightedHead module(size(a.settings, "dim"), streams(a.settings, "n"),
                           {.hc_eps = a.settings.number("hc_eps"),
                            .norm_eps = a.settings.number("norm_eps"),
                            .path = path,
                            .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a, [](const std::string& name) { return "hc_" + name; });
  return module(a["x"]);
}

/// Sites 0, 1, .. one after the other.
Var single_pass(const CaseInputs& a, mhc::Path path) {
  Rng rng;
  mhc::SinglePassConnection module(size(a.settings, "dim"), streams(a.settings, "n"), rng, deepseek_settings(a, path));
  mhc::SinglePassStreams x = module.first(mhc::Streams(a["x"]));
  for (std::int64_t site = 0; site < size(a.settings, "depth"); ++site) {
    const std::string prefix = std::to_string(site) + ".";
    nn::set_params(module, a, [&](const std::string& name) { return prefix + name; });
    x = module(x, layer_of(a[prefix + "w"]));
  }
  return module.close(x);
}

/// A gated residual or its head, with the parameters of the case.
template <class M>
M gated(const CaseInputs& a, mhc::Path path) {
  Rng rng;
  M module(size(a.settings, "dim"), streams(a.settings, "n"), rng,
           {.rank = size(a.settings, "rank"),
            .norm_eps = a.settings.number("norm_eps"),
            .path = path,
            .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module;
}

Var qwen4_gated_residual(const CaseInputs& a, mhc::Path path) {
  return gated<mhc::GatedResidual>(a, path)(a["x"], layer_of(a["w"]));
}

Var qwen4_head(const CaseInputs& a, mhc::Path path) { return gated<mhc::GatedHead>(a, path)(a["x"]); }

}  // namespace

std::vector<Module> released_models() {
  return {{"deepseek_v4", both_paths(deepseek_v4)},
          {"hunyuan_v4", both_paths(hunyuan_v4)},
          {"weighted_head", both_paths(weighted_head)},
          {"single_pass", both_paths(single_pass)},
          {"qwen4_gated_residual", both_paths(qwen4_gated_residual)},
          {"qwen4_head", both_paths(qwen4_head)}};
}

}  // namespace braid::golden

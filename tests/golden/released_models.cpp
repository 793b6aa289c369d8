#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/connections/released/gated_residual.h>
#include <braid/mhc/connections/released/released_connection.h>
#include <braid/mhc/connections/released/single_pass.h>
#include <braid/mhc/connections/released/weighted_head.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// The layer inside: tanh(h w).
auto layer_of(const Var& w) {
  return [w](const Var& h) { return tanh(linear(h, transpose(w))); };
}

mhc::ReleasedSettings released_settings(const CaseInputs& a) {
  return {.sinkhorn_iterations = iterations(a.settings, "sinkhorn_iterations"),
          .hc_eps = a.settings.number("hc_eps"),
          .norm_eps = a.settings.number("norm_eps"),
          .dtype = compute_dtype(a.dtype())};
}

Var deepseek_v4(const CaseInputs& a) {
  Rng rng;
  mhc::ReleasedConnection module =
      mhc::deepseek_v4(size(a.settings, "dim"), streams(a.settings, "n"), rng, released_settings(a));
  nn::set_params(module, a);
  return module(a["x"], layer_of(a["w"]));
}

Var hunyuan_v4(const CaseInputs& a) {
  Rng rng;
  mhc::ReleasedConnection module = mhc::hunyuan_v4(size(a.settings, "dim"), streams(a.settings, "n"), rng,
                                                   {.hc_eps = a.settings.number("hc_eps"),
                                                    .norm_eps = a.settings.number("norm_eps"),
                                                    .post_magnitude = a.settings.number("magnitude"),
                                                    .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module(a["x"], layer_of(a["w"]));
}

Var weighted_head(const CaseInputs& a) {
  mhc::WeightedHead module(size(a.settings, "dim"), streams(a.settings, "n"),
                           {.hc_eps = a.settings.number("hc_eps"),
                            .norm_eps = a.settings.number("norm_eps"),
                            .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a, [](const std::string& name) { return "hc_" + name; });
  return module(a["x"]);
}

/// Sites 0, 1, .. in sequence.
Var single_pass(const CaseInputs& a) {
  Rng rng;
  mhc::SinglePassConnection module(size(a.settings, "dim"), streams(a.settings, "n"), rng, released_settings(a));
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
M gated(const CaseInputs& a) {
  Rng rng;
  M module(
      size(a.settings, "dim"), streams(a.settings, "n"), rng,
      {.rank = size(a.settings, "rank"), .norm_eps = a.settings.number("norm_eps"), .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module;
}

Var qwen4_gated_residual(const CaseInputs& a) { return gated<mhc::GatedResidual>(a)(a["x"], layer_of(a["w"])); }

Var qwen4_head(const CaseInputs& a) { return gated<mhc::GatedHead>(a)(a["x"]); }

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

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/rms_norm.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/connections/hyper_connection.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>

#include <tests/golden/modules.h>
#include <tests/golden/sinkhorn.h>

namespace braid::golden {
namespace {

/// The layer inside: tanh(h w).
auto layer_of(const CaseInputs& a) {
  return [w = a["w"]](const Var& h) { return tanh(linear(h, transpose(w))); };
}

Var hyper_connection(const CaseInputs& a) {
  mhc::HyperConnection module(size(a.settings, "dim"), streams(a.settings, "n"), 0,
                              {.eps = a.settings.number("eps"), .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module(a["x"], layer_of(a));
}

mhc::ManifoldConstrainedHC manifold_constrained_hc(const CaseInputs& a) {
  Rng rng;
  mhc::ManifoldConstrainedHC module(size(a.settings, "dim"), streams(a.settings, "n"), rng,
                                    {.mixing_settings = {.iterations = iterations(a.settings, "sinkhorn_iterations"),
                                                         .exact = exact_marginal(a.settings)},
                                     .eps = a.settings.number("eps"),
                                     .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module;
}

/// mHC with any mixing.
Outputs mixed(const CaseInputs& a) {
  Rng rng;
  mhc::ManifoldConstrainedHC module(
      size(a.settings, "dim"), streams(a.settings, "n"), rng,
      {.mixing = a.settings.text("kind"), .eps = a.settings.number("eps"), .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return {{"y", module(a["x"], layer_of(a))}, {"h_res", module.maps(a["x"]).h_res}};
}

Outputs constrained(const CaseInputs& a) {
  const mhc::ManifoldConstrainedHC module = manifold_constrained_hc(a);
  const mhc::StreamMaps maps = module.maps(a["x"]);
  return {{"y", module(a["x"], layer_of(a))}, {"h_pre", maps.h_pre}, {"h_post", maps.h_post}, {"h_res", maps.h_res}};
}

/// The logits of the Sinkhorn-Knopp iteration in h = alpha (rms_norm(x_flat) phi) + bias.
double largest_residual_logit(const RecordedCase& golden) {
  const Tensor &x = golden.tensor("in.x"), &phi = golden.tensor("param.phi");
  const std::int64_t n = x.size(-2), tokens = x.numel() / phi.size(0);
  const Var h = matmul(rms_norm(x.reshape({tokens, phi.size(0)}), golden.settings.number("eps")), phi) *
                    golden.tensor("param.alpha").slice(0, 2, 3) +
                golden.tensor("param.bias");
  return largest(h.value().slice(1, 2 * n, h.size(1)));
}

}  // namespace

std::vector<Module> stream_modules() {
  return {{"hyper_connection", both_paths(hyper_connection)},
          {"manifold_constrained_hc", both_paths(constrained), largest_residual_logit},
          {"mixed_hc", both_paths(mixed)}};
}

}  // namespace braid::golden

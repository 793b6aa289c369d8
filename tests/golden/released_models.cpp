#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/released/gated_residual.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// The layer inside: tanh(h w).
auto layer_of(const Arguments& a) {
  return [w = a["w"]](const Var& h) { return tanh(linear(h, transpose(w))); };
}

/// A gated residual or its head, with the parameters of the case.
template <class M>
M gated(const Arguments& a, mhc::Path path) {
  Rng rng;
  M module(
      a.config.integer("dim"), a.config.integer("n"), rng,
      {.rank = a.config.integer("rank"), .norm_eps = a.config.number("norm_eps"), .path = path, .dtype = a.dtype()});
  set_params(module, a);
  return module;
}

Var qwen4_gated_residual(const Arguments& a, mhc::Path path) {
  return gated<mhc::GatedResidual>(a, path)(a["x"], layer_of(a));
}

Var qwen4_head(const Arguments& a, mhc::Path path) { return gated<mhc::GatedHead>(a, path)(a["x"]); }

}  // namespace

std::vector<Module> released_models() {
  return {{"qwen4_gated_residual", both_paths(qwen4_gated_residual)}, {"qwen4_head", both_paths(qwen4_head)}};
}

}  // namespace braid::golden

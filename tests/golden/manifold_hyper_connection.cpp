#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/connections/manifold_hyper_connection.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

mhc::ManifoldHyperConnection connection(const CaseInputs& a) {
  Rng rng;
  mhc::ManifoldHyperConnection module(size(a.settings, "dims"), rng,
                                      {.expansion = streams(a.settings, "expansion"),
                                       .sinkhorn_iterations = iterations(a.settings, "sinkhorn_iterations"),
                                       .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module;
}

/// `x w`
Var layer(const CaseInputs& a, const Var& x) { return linear(x, transpose(a["w"])); }

Var pre_scale(const CaseInputs& a) { return connection(a).pre_scale(a["x"]); }
Var post_combine(const CaseInputs& a) { return connection(a).post_combine(a["x"], a["layer_output"]); }

Var legacy(const CaseInputs& a) { return connection(a)(a["x"], layer(a, a["x"])); }

Var two_stage(const CaseInputs& a) {
  const mhc::ManifoldHyperConnection module = connection(a);
  return module.post_combine(a["x"], layer(a, module.pre_scale(a["x"])));
}

Var around_a_layer(const CaseInputs& a) {
  return connection(a)(a["x"], [&](const Var& x) { return layer(a, x); });
}

}  // namespace

std::vector<Module> manifold_hyper_connection_modules() {
  std::vector<Path> two_stages = both_paths(two_stage);
  for (Path& path : both_paths(around_a_layer)) {
    path.name += " around a layer";
    two_stages.push_back(path);
  }
  return {
      {"mhconn_legacy", both_paths(legacy)},
      {"mhconn_post_combine", both_paths(post_combine)},
      {"mhconn_pre_scale", both_paths(pre_scale)},
      {"mhconn_two_stage", two_stages},
  };
}

}  // namespace braid::golden

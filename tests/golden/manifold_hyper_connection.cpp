#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/mhc/manifold_hyper_connection.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

mhc::ManifoldHyperConnection connection(const Arguments& a) {
  Rng rng;
  mhc::ManifoldHyperConnection module(a.config.integer("dims"), rng,
                                      {.expansion = a.config.integer("expansion"),
                                       .sinkhorn_iterations = static_cast<int>(a.config.integer("sinkhorn_iterations")),
                                       .dtype = a.dtype()});
  set_params(module, a);
  return module;
}

/// `x w`
Var layer(const Arguments& a, const Var& x) { return linear(x, transpose(a["w"])); }

Var pre_scale(const Arguments& a) { return connection(a).pre_scale(a["x"]); }
Var post_combine(const Arguments& a) { return connection(a).post_combine(a["x"], a["layer_output"]); }
Var legacy(const Arguments& a) { return connection(a)(a["x"], layer(a, a["x"])); }

Var two_stage(const Arguments& a) {
  const mhc::ManifoldHyperConnection module = connection(a);
  return module.post_combine(a["x"], layer(a, module.pre_scale(a["x"])));
}

Var around_a_layer(const Arguments& a) {
  return connection(a)(a["x"], [&](const Var& x) { return layer(a, x); });
}

}  // namespace

std::vector<Module> manifold_hyper_connection_modules() {
  return {
      {"mhconn_legacy", {path("module", legacy)}},
      {"mhconn_post_combine", {path("module", post_combine)}},
      {"mhconn_pre_scale", {path("module", pre_scale)}},
      {"mhconn_two_stage", {path("two stages", two_stage), path("around a layer", around_a_layer)}},
  };
}

}  // namespace braid::golden

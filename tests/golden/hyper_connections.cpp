#include <braid/autograd/ops.h>
#include <braid/mhc/hyper_connection.h>
#include <braid/mhc/manifold_constrained_hc.h>
#include <braid/mhc/manifold_hyper_connection.h>
#include <braid/mhc/mhc_layer.h>
#include <braid/mhc/mhc_skip.h>
#include <braid/mhc/projections.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// Parameters are named in the cases as in the modules.
std::string same(const std::string& path) { return path; }

int iterations(const Arguments& a) { return static_cast<int>(a.config.integer("sinkhorn_iterations")); }

mhc::Marginal exact(const Arguments& a) {
  return a.config.text("exact") == "rows" ? mhc::Marginal::rows : mhc::Marginal::columns;
}

Path sinkhorn_with(const char* name, Var (*normalize)(const Var&, int, mhc::Marginal)) {
  return path(name, [normalize](const Arguments& a) {
    return normalize(a["logits"], static_cast<int>(a.config.integer("iterations")), exact(a));
  });
}

mhc::ManifoldHyperConnection manifold(const Arguments& a) {
  Rng rng;
  mhc::ManifoldHyperConnection module(
      a.config.integer("dims"), rng,
      {.expansion = a.config.integer("expansion"), .sinkhorn_iterations = iterations(a), .dtype = a.dtype()});
  set_params(module, a, same);
  return module;
}

std::vector<Module> manifold_hyper_connections() {
  return {
      {"mhconn_pre_scale", {path("ops", [](const Arguments& a) { return manifold(a).pre_scale(a["x"]); })}},
      {"mhconn_post_combine",
       {path("ops", [](const Arguments& a) { return manifold(a).post_combine(a["x"], a["layer_output"]); })}},
      {"mhconn_two_stage",
       {path("ops",
             [](const Arguments& a) { return manifold(a)(a["x"], [&](const Var& h) { return matmul(h, a["w"]); }); })}},
      {"mhconn_legacy", {path("ops", [](const Arguments& a) { return manifold(a)(a["x"], matmul(a["x"], a["w"])); })}},
  };
}

Var mhc_layer(const Arguments& a) {
  mhc::MHCLayer module(a.config.integer("n"), a.config.integer("C"),
                       {.sinkhorn_iterations = iterations(a), .eps = a.config.number("eps"), .dtype = a.dtype()});
  set_params(module, a, same);
  return module(a["x"]);
}

/// The layer of the cases on streams: tanh(u w) for u [..., C].
Var tanh_layer(const Arguments& a, const Var& u) { return tanh(linear(u, transpose(a["w"]))); }

Var hyper_connection(const Arguments& a) {
  mhc::HyperConnection module(a.config.integer("dim"), a.config.integer("n"), 0,
                              {.eps = a.config.number("eps"), .dtype = a.dtype()});
  set_params(module, a, same);
  return module(a["x"], [&](const Var& u) { return tanh_layer(a, u); });
}

Outputs manifold_constrained_hc(const Arguments& a) {
  Rng rng;
  mhc::ManifoldConstrainedHC module(
      a.config.integer("dim"), a.config.integer("n"), rng,
      {.sinkhorn_iterations = iterations(a), .exact = exact(a), .eps = a.config.number("eps"), .dtype = a.dtype()});
  set_params(module, a, same);
  const mhc::StreamMaps maps = module.maps(a["x"]);
  return {{"y", module(a["x"], [&](const Var& u) { return tanh_layer(a, u); })},
          {"h_pre", maps.h_pre},
          {"h_post", maps.h_post},
          {"h_res", maps.h_res}};
}

Var mhc_skip(const Arguments& a) {
  const mhc::ConstraintSettings settings{a.config.number("epsilon"), a.config.number("temperature")};
  mhc::MHCSkip module({.mode = mhc::skip_mode(a.config.text("mode")),
                       .constraint = mhc::make_constraint(a.config.text("constraint"), settings),
                       .max_history = a.config.integer("max_history"),
                       .dtype = a.dtype()});
  set_params(module, a, same);
  std::vector<Var> history;
  for (std::int64_t k = 0; k < a.config.integer("history"); ++k) history.push_back(a["history." + std::to_string(k)]);
  return module(a["x"], history);
}

}  // namespace

std::vector<Module> hyper_connection_modules() {
  std::vector<Module> all = manifold_hyper_connections();
  all.push_back(
      {"sinkhorn",
       {sinkhorn_with("kernel", mhc::sinkhorn_knopp), sinkhorn_with("composed", mhc::sinkhorn_knopp_composed)}});
  all.push_back({"mhc_layer", {path("ops", mhc_layer)}});
  all.push_back({"hyper_connection", {path("ops", hyper_connection)}});
  all.push_back({"manifold_constrained_hc", {differentiated("ops", manifold_constrained_hc)}});
  all.push_back({"mhc_skip", {path("ops", mhc_skip)}});
  all.push_back(
      {"simplex_projection", {path("op", [](const Arguments& a) { return mhc::simplex_projection(a["v"]); })}});
  return all;
}

}  // namespace braid::golden

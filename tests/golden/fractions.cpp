#include <braid/autograd/ops.h>
#include <braid/mhc/connections/attention_pool.h>
#include <braid/mhc/connections/frac_connection.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// The sum over views of view w.
Var layer_of_views(const CaseInputs& a, const Var& u) {
  if (size(a.settings, "views") == 1) return matmul(u, a["w"]);
  return sum(matmul(u, expand_dims(a["w"], 1)), 0);
}

mhc::FracConnection frac_connection(const CaseInputs& a, const mhc::FracConnectionSettings& case_settings) {
  Rng unused;
  mhc::FracConnectionSettings settings = case_settings;
  settings.fractions = size(a.settings, "fractions");
  settings.views = size(a.settings, "views");
  settings.eps = 1e-24;  // the package divides by the larger of norm and 1e-12
  settings.dtype = compute_dtype(a.dtype());
  return {a["x"].size(-1), streams(a.settings, "n"), 0, unused, settings};
}

Outputs read_and_written(const mhc::FracConnection& module, const CaseInputs& a) {
  const mhc::StreamMaps maps = module.maps(a["x"]);
  const Var u = module.read(maps, a["x"]);
  return {{"y", module.write(maps, a["x"], layer_of_views(a, u))}, {"u", u}};
}

/// The package's mHC with fractions and proposals, whose parameters are those of FracConnection transposed, with the
/// norm's weight apart and b_post the same for all fractions that are written.
Outputs fractions(const CaseInputs& a) {
  mhc::FracConnection m = frac_connection(a, {.proposals = size(a.settings, "proposals"),
                                              .constrained = true,
                                              .sinkhorn_iterations = iterations(a.settings, "iterations")});
  const std::int64_t f = m.settings.fractions, n = m.streams(), reads = m.b_pre.size(0);
  const Var weight = expand_dims(a["norm.gamma"] + 1.0, -1), bias = transpose(a["static_alpha"]);
  m.theta = reshape(transpose(a["dynamic_alpha_fn"] * weight), m.theta.shape());
  m.theta_post = transpose(a["dynamic_beta_fn"] * weight);
  m.alpha = concat({a["pre_branch_scale"], reshape(a["h_post_scale"], {1}), a["residual_scale"]}, 0);
  m.b_pre = slice(bias, 0, 0, reads);
  m.b_res = slice(bias, 0, reads, reads + n * f);
  m.b_post = reshape(transpose(broadcast_to(a["static_beta"], {n, f, f})), {n * f, f});
  return read_and_written(m, a);
}

/// The package's hyper-connections with fractions and views, which number fractions first and streams second.
Outputs fractions_hc(const CaseInputs& a) {
  mhc::FracConnection m = frac_connection(a, {});
  const std::int64_t f = m.settings.fractions, n = m.streams(), v = m.settings.views, width = m.theta.size(-1);
  const Var weight = expand_dims(a["norm.gamma"] + 1.0, -1), zero = zeros({1}, weight.dtype());
  m.theta = reshape(permute(reshape(a["dynamic_alpha_fn"] * weight, {width, f, v + n}), {2, 1, 0}), m.theta.shape());
  m.theta_post = transpose(reshape(a["dynamic_beta_fn"], {width, f}) * weight);
  m.alpha =
      concat({a["dynamic_alpha_scale"] + zero, a["dynamic_beta_scale"] + zero, a["dynamic_alpha_scale"] + zero}, 0);
  const Var bias = reshape(permute(reshape(a["static_alpha"], {f, n, f, v + n}), {3, 2, 1, 0}), {(v + n) * f, n * f});
  m.b_pre = slice(bias, 0, 0, v * f);
  m.b_res = slice(bias, 0, v * f, (v + n) * f);
  m.b_post = broadcast_to(expand_dims(a["static_beta"], -1), {n * f, f});
  return read_and_written(m, a);
}

Var stream_embedding(const CaseInputs& a) {
  mhc::Streams x(mhc::expand_streams(a["x"], streams(a.settings, "n")));
  x.add(a["stream_embed"]);
  return x.value();
}

Var attention_pool(const CaseInputs& a) {
  mhc::AttentionPool module(a["x"].size(-1), compute_dtype(a.dtype()));
  nn::set_params(module, a, [](const std::string& name) { return "to_attn_" + name + ".weight"; });
  return module(a["x"]);
}

}  // namespace

std::vector<Module> fractions_modules() {
  return {{"fractions", both_paths(fractions)},
          {"fractions_hc", both_paths(fractions_hc)},
          {"stream_embedding", both_paths(stream_embedding)},
          {"attention_pool", both_paths(attention_pool)}};
}

}  // namespace braid::golden

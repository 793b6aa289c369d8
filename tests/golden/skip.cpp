#include <braid/autograd/ops/slice.h>
#include <braid/mhc/connections/history/mhc_skip.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/ops/projections.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

mhc::MHCSkip skip(const CaseInputs& a) {
  const mhc::ConstraintSettings settings{.epsilon = a.settings.number("epsilon"),
                                         .temperature = a.settings.number("temperature")};
  mhc::MHCSkip module({.mode = mhc::skip_mode(a.settings.text("mode")),
                       .constraint = mhc::make_constraint(a.settings.text("constraint"), settings),
                       .max_history = size(a.settings, "max_history"),
                       .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module;
}

/// Given the whole history at once.
Var on_a_list(const CaseInputs& a) {
  std::vector<Var> history;
  for (std::int64_t k = 0; k < size(a.settings, "history"); ++k) history.push_back(a[fmt::format("history.{}", k)]);
  return skip(a)(a["x"], history);
}

/// Given a buffer that forgets what is too old.
Var on_a_buffer(const CaseInputs& a) {
  mhc::HistoryBuffer history(size(a.settings, "max_history"));
  for (std::int64_t k = 0; k < size(a.settings, "history"); ++k) history.append(a[fmt::format("history.{}", k)]);
  return skip(a)(a["x"], history);
}

Var simplex_projection(const CaseInputs& a) { return mhc::simplex_projection(a["v"]); }

Outputs attention_residual(const CaseInputs& a) {
  std::vector<Var> states;
  for (std::int64_t i = 0; i < size(a.settings, "blocks"); ++i) states.push_back(select(a["v"], 0, i));
  const double eps = a.settings.number("eps");
  return {{"y", mhc::attention_residual(a["query"], a["norm"], states, eps)},
          {"weights", mhc::attention_residual_weights(a["query"], a["norm"], states, eps)}};
}

}  // namespace

std::vector<Module> skip_modules() {
  std::vector<Path> paths = both_paths(on_a_list);
  for (Path& path : both_paths(on_a_buffer)) {
    path.name += " from a buffer";
    paths.push_back(path);
  }
  return {{"mhc_skip", paths},
          {"attention_residual", both_paths(attention_residual)},
          {"simplex_projection", {path("op", simplex_projection, InBF16::nothing)}}};
}

}  // namespace braid::golden

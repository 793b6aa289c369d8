#include <braid/mhc/mhc_skip.h>
#include <braid/mhc/projections.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

mhc::MHCSkip skip(const Arguments& a) {
  const mhc::ConstraintSettings settings{.epsilon = a.config.number("epsilon"),
                                         .temperature = a.config.number("temperature")};
  mhc::MHCSkip module({.mode = mhc::skip_mode(a.config.text("mode")),
                       .constraint = mhc::make_constraint(a.config.text("constraint"), settings),
                       .max_history = a.config.integer("max_history"),
                       .dtype = a.dtype()});
  set_params(module, a);
  return module;
}

/// Given the whole history at once.
Var on_a_list(const Arguments& a) {
  std::vector<Var> history;
  for (std::int64_t k = 0; k < a.config.integer("history"); ++k) history.push_back(a[fmt::format("history.{}", k)]);
  return skip(a)(a["x"], history);
}

/// Given a buffer that forgets what is too old.
Var on_a_buffer(const Arguments& a) {
  mhc::HistoryBuffer history(a.config.integer("max_history"));
  for (std::int64_t k = 0; k < a.config.integer("history"); ++k) history.append(a[fmt::format("history.{}", k)]);
  return skip(a)(a["x"], history);
}

Var simplex_projection(const Arguments& a) { return mhc::simplex_projection(a["v"]); }

}  // namespace

std::vector<Module> skip_modules() {
  return {{"mhc_skip", {path("list", on_a_list), path("buffer", on_a_buffer)}},
          {"simplex_projection", {path("op", simplex_projection)}}};
}

}  // namespace braid::golden

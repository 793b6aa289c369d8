#pragma once
#include <cstdlib>
#include <string_view>

#include <braid/autograd/composed.h>
#include <braid/core/error.h>

namespace braid::mhc {

/// Whether the fused ops of hyper-connections run their composed forms on this thread: within a Composed scope, or in
/// the whole program if the environment variable BRAID_MHC_PATH is "reference" at the first call. Throws ValueError
/// unless the variable is absent, "fused" or "reference". HigherOrder scopes compose ops without a rule.
inline bool composed(bool has_rule = false) {
  static const bool always = [] {
    const char* variable = std::getenv("BRAID_MHC_PATH");
    const std::string_view path = variable == nullptr ? "fused" : variable;
    check_value(path == "fused" || path == "reference", "BRAID_MHC_PATH must be one of fused, reference but is '{}'",
                path);
    return path == "reference";
  }();
  const auto [all, connections, higher_order] = Composed::state();
  return always || all || connections || (higher_order && !has_rule);
}

}  // namespace braid::mhc

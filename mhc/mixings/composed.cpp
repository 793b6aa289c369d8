#include <braid/mhc/mixings/composed.h>

#include <cstdlib>
#include <string_view>

#include <braid/autograd/composed.h>
#include <braid/core/error.h>

namespace braid::mhc {
namespace {

bool is_reference(std::string_view path) {
  check_value(path == "fused" || path == "reference", "BRAID_MHC_PATH must be one of fused, reference but is '{}'",
              path);
  return path == "reference";
}

}  // namespace

bool composed(bool has_rule) {
  static const char* const variable = std::getenv("BRAID_MHC_PATH");
  static const bool always = variable != nullptr && is_reference(variable);
  const auto [all, connections, higher_order] = Composed::state();
  return always || all || connections || (higher_order && !has_rule);
}

}  // namespace braid::mhc

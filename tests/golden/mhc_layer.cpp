#include <braid/mhc/mhc_layer.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

Var mhc_layer(const CaseInputs& a, mhc::Path path) {
  mhc::MHCLayer module(a.settings.integer("n"), a.settings.integer("C"),
                       {.sinkhorn_iterations = static_cast<int>(a.settings.integer("sinkhorn_iterations")),
                        .eps = a.settings.number("eps"),
                        .path = path,
                        .dtype = a.dtype()});
  nn::set_params(module, a);
  return module(a["x"]);
}

}  // namespace

std::vector<Module> mhc_layer_modules() { return {{"mhc_layer", both_paths(mhc_layer)}}; }

}  // namespace braid::golden

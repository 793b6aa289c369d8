#include <braid/mhc/connections/mhc_layer.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

Var mhc_layer(const CaseInputs& a) {
  mhc::MHCLayer module(streams(a.settings, "n"), size(a.settings, "C"),
                       {.sinkhorn_iterations = iterations(a.settings, "sinkhorn_iterations"),
                        .eps = a.settings.number("eps"),
                        .dtype = compute_dtype(a.dtype())});
  nn::set_params(module, a);
  return module(a["x"]);
}

}  // namespace

std::vector<Module> mhc_layer_modules() { return {{"mhc_layer", both_paths(mhc_layer)}}; }

}  // namespace braid::golden

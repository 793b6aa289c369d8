#include <braid/mhc/mhc_layer.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

Var mhc_layer(const Arguments& a, mhc::Path path) {
  mhc::MHCLayer module(a.config.integer("n"), a.config.integer("C"),
                       {.sinkhorn_iterations = static_cast<int>(a.config.integer("sinkhorn_iterations")),
                        .eps = a.config.number("eps"),
                        .path = path,
                        .dtype = a.dtype()});
  set_params(module, a);
  return module(a["x"]);
}

}  // namespace

std::vector<Module> mhc_layer_modules() { return {{"mhc_layer", both_paths(mhc_layer)}}; }

}  // namespace braid::golden

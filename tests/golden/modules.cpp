#include <tests/golden/modules.h>

namespace braid::golden {

std::vector<Module> all_modules() {
  std::vector<Module> all;
  for (const auto group : {
           attention_modules,
           elementary_modules,
           forms_modules,
           fractions_modules,
           manifold_hyper_connection_modules,
           mhc_layer_modules,
           mixing_modules,
           released_models,
           sinkhorn_modules,
           skip_modules,
           stream_modules,
           transformer_modules,
       }) {
    for (Module& module : group()) all.push_back(std::move(module));
  }
  return all;
}

}  // namespace braid::golden

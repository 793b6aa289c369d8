#pragma once
#include <vector>

#include <tests/golden/module.h>

namespace braid::golden {

// The modules that cases can name, by group.
std::vector<Module> attention_modules();
std::vector<Module> elementary_modules();
std::vector<Module> forms_modules();
std::vector<Module> fractions_modules();
std::vector<Module> manifold_hyper_connection_modules();
std::vector<Module> mhc_layer_modules();
std::vector<Module> mixing_modules();
std::vector<Module> released_models();
std::vector<Module> sinkhorn_modules();
std::vector<Module> skip_modules();
std::vector<Module> stream_modules();
std::vector<Module> transformer_modules();

/// All of them.
std::vector<Module> all_modules();

}  // namespace braid::golden

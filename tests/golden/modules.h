#pragma once
#include <vector>

#include <tests/golden/module.h>

namespace braid::golden {

// The modules that cases can name, by group.
std::vector<Module> attention_modules();
std::vector<Module> elementary_modules();
std::vector<Module> hyper_connection_modules();
std::vector<Module> transformer_modules();

/// All of them.
std::vector<Module> all_modules();

}  // namespace braid::golden

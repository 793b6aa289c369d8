#include <braid/mhc/mixing.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

Var mixing(const Arguments& a, mhc::Path path) {
  mhc::MixingSettings settings;
  if (a.config.has("gamma")) settings.gamma = a.config.number("gamma");
  if (a.config.has("s")) settings.block = static_cast<int>(a.config.integer("s"));
  return mhc::Mixing(a.config.text("kind"), a.config.integer("n"), settings)(a["logits"], path);
}

}  // namespace

std::vector<Module> mixing_modules() {
  return {{"mixing", both_paths(mixing), [](const Case& golden) { return largest(golden.tensor("in.logits")); }}};
}

}  // namespace braid::golden

#include <braid/mhc/mixings/mixing.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

Var mixing(const CaseInputs& a) {
  mhc::MixingSettings settings;
  if (a.settings.has("gamma")) settings.gamma = a.settings.number("gamma");
  if (a.settings.has("s")) settings.block = static_cast<int>(size(a.settings, "s"));
  return mhc::Mixing(a.settings.text("kind"), streams(a.settings, "n"), settings)(a["logits"]);
}

}  // namespace

std::vector<Module> mixing_modules() {
  return {{"mixing", both_paths(mixing, InBF16::nothing),
           [](const RecordedCase& golden) { return largest(golden.tensor("in.logits")); }}};
}

}  // namespace braid::golden

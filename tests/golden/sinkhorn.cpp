#include <tests/golden/sinkhorn.h>

#include <tests/golden/modules.h>

namespace braid::golden {

mhc::Marginal exact_marginal(const nn::CaseSettings& settings) {
  const std::string exact = settings.text("exact");
  check<FileError>(exact == "columns" || exact == "rows", "exact must be columns or rows but is '{}'", exact);
  return exact == "rows" ? mhc::Marginal::rows : mhc::Marginal::columns;
}

std::vector<Module> sinkhorn_modules() {
  const auto with = [](const char* name, mhc::Path which) {
    return path(
        name,
        [which](const CaseInputs& a) {
          return mhc::sinkhorn_knopp(a["logits"], iterations(a.settings, "iterations"), exact_marginal(a.settings),
                                     which);
        },
        InBF16::nothing);
  };
  return {{"sinkhorn", {with("kernel", mhc::Path::fused), with("composed", mhc::Path::reference)}}};
}

}  // namespace braid::golden

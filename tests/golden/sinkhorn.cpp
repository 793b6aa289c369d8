#include <tests/golden/sinkhorn.h>

#include <tests/golden/modules.h>

namespace braid::golden {

mhc::Marginal exact_marginal(const nn::CaseSettings& settings) {
  const std::string exact = settings.text("exact");
  check<FileError>(exact == "columns" || exact == "rows", "exact must be columns or rows but is '{}'", exact);
  return exact == "rows" ? mhc::Marginal::rows : mhc::Marginal::columns;
}

std::vector<Module> sinkhorn_modules() {
  const auto sinkhorn = [](const CaseInputs& a) {
    return mhc::sinkhorn_knopp(a["logits"], iterations(a.settings, "iterations"), exact_marginal(a.settings));
  };
  return {{"sinkhorn", both_paths(sinkhorn, InBF16::nothing)}};
}

}  // namespace braid::golden

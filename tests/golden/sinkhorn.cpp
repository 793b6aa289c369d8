#include <tests/golden/sinkhorn.h>

#include <tests/golden/modules.h>

namespace braid::golden {

mhc::Marginal exact_marginal(const Config& config) {
  const std::string exact = config.text("exact");
  check<FileError>(exact == "columns" || exact == "rows", "exact must be columns or rows but is '{}'", exact);
  return exact == "rows" ? mhc::Marginal::rows : mhc::Marginal::columns;
}

std::vector<Module> sinkhorn_modules() {
  const auto with = [](const char* name, Var (*normalise)(const Var&, int, mhc::Marginal)) {
    return path(name, [normalise](const Arguments& a) {
      return normalise(a["logits"], static_cast<int>(a.config.integer("iterations")), exact_marginal(a.config));
    });
  };
  return {{"sinkhorn", {with("kernel", mhc::sinkhorn_knopp), with("composed", mhc::sinkhorn_knopp_composed)}}};
}

}  // namespace braid::golden

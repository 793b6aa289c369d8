#include <tests/golden/check.h>

#include <algorithm>
#include <cmath>

namespace braid::golden {
namespace {

/// The module whose name is the longest start of the case's name, or null.
const Module* find_module(const std::string& name, const std::vector<Module>& modules) {
  const Module* best = nullptr;
  for (const Module& module : modules)
    if ((name == module.name || name.starts_with(module.name + "_")) &&
        (best == nullptr || module.name.size() > best->name.size()))
      best = &module;
  return best;
}

bool has_far_logits(const RecordedCase& golden, const Module& module) {
  double most = module.largest_logit ? module.largest_logit(golden) : 0;
  for (const auto& [key, tensor] : golden.tensors)
    if (!key.starts_with("grad.") && (key.ends_with("logits") || key.ends_with("h_res_raw")))
      most = std::max(most, largest(tensor));
  return most > 20;
}

}  // namespace

Verdict check_case(const RecordedCase& golden, const std::vector<Module>& modules) {
  const Module* module = find_module(golden.name, modules);
  if (module == nullptr) return {NAN, NAN, "no module of this name"};
  double f32_tolerance = module->tolerance.f32;
  try {
    if (has_far_logits(golden, *module)) f32_tolerance *= 10;
  } catch (const std::exception& error) {
    return {NAN, NAN, error.what()};
  }
  Verdict verdict;
  for (const Path& path : module->paths) {
    const auto run = [&](DType dtype, double tolerance, double& worst) {
      std::string why;
      try {
        const nn::Verification result = path.check(golden, {.dtype = dtype, .tolerance = tolerance});
        worst = nn::worse(worst, result.worst);
        why = result.message;
      } catch (const std::exception& error) {
        why = error.what();
        worst = NAN;
      }
      if (verdict.why.empty() && !why.empty()) verdict.why = fmt::format("{} {}: {}", name(dtype), path.name, why);
    };
    run(DType::f64, module->tolerance.f64, verdict.f64);
    run(DType::f32, f32_tolerance, verdict.f32);
  }
  return verdict;
}

}  // namespace braid::golden

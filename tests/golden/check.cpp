#include <tests/golden/check.h>

#include <algorithm>
#include <cmath>

#include <tests/golden/bf16.h>

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
    const auto run = [&](const char* dtype, double& worst, const auto& verify) {
      std::string why;
      try {
        const nn::Verification result = verify();
        worst = nn::worse(worst, result.worst);
        why = result.message;
      } catch (const std::exception& error) {
        why = error.what();
        worst = NAN;
      }
      if (verdict.why.empty() && !why.empty()) verdict.why = fmt::format("{} {}: {}", dtype, path.name, why);
    };
    const auto in = [&](DType dtype, double tolerance) {
      return [&path, &golden, options = nn::VerifyOptions{.dtype = dtype, .tolerance = tolerance}] {
        return path.check(golden, options);
      };
    };
    run("f64", verdict.f64, in(DType::f64, module->tolerance.f64));
    run("f32", verdict.f32, in(DType::f32, f32_tolerance));
    if (path.in_bf16 != InBF16::nothing)
      run("bf16", verdict.bf16, [&] { return check_in_bf16(golden, path, f32_tolerance); });
  }
  return verdict;
}

}  // namespace braid::golden

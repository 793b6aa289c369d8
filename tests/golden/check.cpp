#include <tests/golden/check.h>

#include <algorithm>
#include <cmath>

namespace braid::golden {
namespace {

bool is_expected(const std::string& key) {
  return key.starts_with("out.") || key.starts_with("grad.") || key.starts_with("final.");
}

/// The module whose name is the longest start of the case's name, or null.
const Module* find_module(const std::string& name, const std::vector<Module>& modules) {
  const Module* best = nullptr;
  for (const Module& module : modules)
    if ((name == module.name || name.starts_with(module.name + "_")) &&
        (best == nullptr || module.name.size() > best->name.size()))
      best = &module;
  return best;
}

bool has_far_logits(const Case& golden, const Module& module) {
  double most = module.largest_logit ? module.largest_logit(golden) : 0;
  for (const auto& [key, tensor] : golden.tensors)
    if (!key.starts_with("grad.") && (key.ends_with("logits") || key.ends_with("h_res_raw")))
      most = std::max(most, largest(tensor));
  return most > 20;
}

/// Compares the results of one path in one dtype; notes in `why` the first tensor that is missing or beyond tolerance.
double compare(const Case& golden, const Tensors& results, double tolerance, std::string& why) {
  double worst = 0;
  const auto note = [&](const std::string& what) {
    if (why.empty()) why = what;
  };
  for (const auto& [key, result] : results)
    if (!golden.tensors.contains(key)) note(fmt::format("the file must have '{}'", key));
  for (const auto& [key, expected] : golden.tensors) {
    if (!is_expected(key)) continue;
    if (!results.contains(key)) {
      note(fmt::format("'{}' was not computed", key));
      continue;
    }
    const Tensor& result = results.at(key);
    if (result.shape() != expected.shape()) {
      note(fmt::format("{} must have shape {} but has {}", key, expected.shape(), result.shape()));
      continue;
    }
    const double error = relative_error(result, expected);
    if (!(error <= tolerance)) note(fmt::format("{} is off by {:.1e}, more than {:.0e}", key, error, tolerance));
    worst = worse(worst, error);
  }
  return worst;
}

}  // namespace

double relative_error(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = worse(worst, std::abs(x[i] - y[i]));
  return worst / std::max(1.0, largest(b));
}

Verdict check_case(const Case& golden, const std::vector<Module>& modules) {
  const Module* module = find_module(golden.name, modules);
  if (module == nullptr) return {NAN, NAN, "no module of this name"};
  const double f32_tolerance = module->tolerance.f32 * (has_far_logits(golden, *module) ? 10 : 1);
  Verdict verdict;
  for (const Path& path : module->paths) {
    const auto run = [&](DType dtype, double tolerance, double& worst) {
      std::string why;
      try {
        const double error = compare(golden, path.evaluate(converted(golden, dtype)), tolerance, why);
        worst = worse(worst, error);
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

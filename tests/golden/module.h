#pragma once
#include <functional>
#include <string>
#include <vector>

#include <braid/autograd/composed.h>
#include <braid/nn/verify/verify.h>

namespace braid::golden {

using nn::CaseInputs;
using nn::RecordedCase;

/// Outputs by name; the cotangent belongs to "y".
using Outputs = std::map<std::string, Var>;

/// The tensors of a case that are bf16 when a path runs in bf16; what_flows: activations, with parameters in f32, as in
/// mixed precision.
enum class InBF16 { nothing, what_flows, everything };

/// One way to compute a module. Where there is a fused and a composed one, both are checked.
struct Path {
  std::string name;
  std::function<nn::Verification(const RecordedCase&, const nn::VerifyOptions&)> check;
  /// The outputs of a case in the dtypes of its inputs, with activations in `flow`; for all but InBF16::nothing.
  std::function<Outputs(const RecordedCase&, const CaseInputs&, DType flow)> call{};
  InBF16 in_bf16 = InBF16::nothing;
};

/// Calls a module, and its vjp with the cotangent.
Path differentiated(std::string name, std::function<Outputs(const CaseInputs&)> call,
                    InBF16 in_bf16 = InBF16::everything);
/// The same for a module whose only output is y.
Path path(std::string name, std::function<Var(const CaseInputs&)> call, InBF16 in_bf16 = InBF16::everything);
/// A module of mhc, fused and in its composed form; call(inputs) returns y, or outputs by name.
template <class F>
std::vector<Path> both_paths(F call, InBF16 in_bf16 = InBF16::what_flows) {
  const auto fused = [=](const CaseInputs& a) { return nn::detail::named_outputs(call(a)); };
  const auto composed = [=](const CaseInputs& a) {
    const Composed scope(Composed::Ops::connections);
    return fused(a);
  };
  return {differentiated("composed", composed, in_bf16), differentiated("fused", fused, in_bf16)};
}

/// The largest difference that passes.
struct Tolerance {
  double f64 = 1e-10, f32 = 2e-5;
};

/// Checks the cases named `name` or `name`_*.
struct Module {
  std::string name;
  std::vector<Path> paths;
  /// The largest |logit| of a case, for modules that compute logits inside.
  std::function<double(const RecordedCase&)> largest_logit{};
  Tolerance tolerance{};
};

/// Settings in the range of all cases, so that a wrong one fails its case and not the program.
inline std::int64_t size(const nn::CaseSettings& settings, const char* key) { return settings.integer(key, 1, 4096); }
inline std::int64_t streams(const nn::CaseSettings& settings, const char* key) { return settings.integer(key, 1, 64); }
inline int iterations(const nn::CaseSettings& settings, const char* key) {
  return static_cast<int>(settings.integer(key, 1, 10'000));
}

/// The largest |x|, 0 for no elements.
double largest(const Tensor& x);

}  // namespace braid::golden

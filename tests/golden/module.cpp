#include <tests/golden/module.h>

#include <algorithm>
#include <cmath>

namespace braid::golden {
namespace {

template <class F>
Path verified(std::string name, F call, InBF16 in_bf16) {
  return {
      std::move(name),
      [call](const RecordedCase& golden, const nn::VerifyOptions& options) {
        return nn::verify(golden, call, options);
      },
      [call](const RecordedCase&, const CaseInputs& inputs, DType) { return nn::detail::named_outputs(call(inputs)); },
      in_bf16};
}

}  // namespace

Path differentiated(std::string name, std::function<Outputs(const CaseInputs&)> call, InBF16 in_bf16) {
  return verified(std::move(name), std::move(call), in_bf16);
}

Path path(std::string name, std::function<Var(const CaseInputs&)> call, InBF16 in_bf16) {
  return verified(std::move(name), std::move(call), in_bf16);
}

double largest(const Tensor& x) {
  double most = 0;
  for (const double v : x.to_vector<double>()) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace braid::golden

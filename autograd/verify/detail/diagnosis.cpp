#include <braid/autograd/verify/detail/diagnosis.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <braid/autograd/verify/detail/differences.h>

namespace braid::detail {

std::pair<Tensor, std::string> diagnose(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                                        const std::vector<std::string>& names) {
  std::vector<Tensor> before;
  for (const Tensor& input : inputs) before.push_back(input.clone());
  const std::vector<Var> point(inputs.begin(), inputs.end());
  const Tensor y = f(point).value(), again = f(point).value();
  check_f64(y, "the output of f");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!identical(inputs[i], before[i])) return {y, fmt::format("f changes {}, which it may only read", names[i])};
  if (!identical(y, again))
    return {y,
            "f is not deterministic: two calls with the same inputs differ; when it draws random numbers, as dropout "
            "does, give each call a copy of one Rng"};
  const std::vector<double> values = y.to_vector<double>();
  const auto odd = std::ranges::find_if_not(values, [](double v) { return std::isfinite(v); });
  if (odd == values.end()) return {y, ""};
  return {y, fmt::format("f returns {} in {} of its output {}", *odd, element_name(y.shape(), odd - values.begin()),
                         y.shape())};
}

void check_f64(const Tensor& x, const std::string& what) {
  check_dtype(x.dtype() == DType::f64, "gradcheck: {} must be f64 but is {}", what, name(x.dtype()));
}

}  // namespace braid::detail

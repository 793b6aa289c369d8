#pragma once
#include <compare>
#include <string>
#include <vector>

#include <braid/autograd/derivative.h>
#include <braid/autograd/verify/gradcheck.h>

namespace braid::detail {

/// The error of `analytic` relative to the larger value or `floor`, infinite when one is not finite.
double relative_error(double analytic, const Derivative& numeric, double floor);

Verdict judge(double analytic, const Derivative& numeric, double floor, double tolerance);

/// The worst derivative has the largest: what is wrong before what is right, single elements before directions, then by
/// the error of what is decided.
struct Severity {
  bool wrong, element;
  double error;
  auto operator<=>(const Severity&) const = default;
};
Severity severity(const CheckedDerivative& checked);

/// `input 0, element [1]: analytic .., numeric .. +- .., relative error .., tolerance ..`
std::string describe(const CheckedDerivative& checked, double tolerance);

/// A line `f does not depend on ..` for every input whose derivatives are all zero as far as differences can tell.
std::string without_influence(const std::vector<CheckedDerivative>& all);

}  // namespace braid::detail

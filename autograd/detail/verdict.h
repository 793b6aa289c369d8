#pragma once
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/derivative.h>
#include <braid/autograd/gradcheck.h>

namespace braid::detail {

/// The error of `analytic` relative to the larger value or `floor`, infinite when one is not finite.
double relative_error(double analytic, const Derivative& numeric, double floor);

Verdict judge(double analytic, const Derivative& numeric, double floor, double tolerance);

/// The worst derivative has the largest: what is decided counts by its error, what is wrong before what is right.
std::pair<bool, double> severity(const CheckedDerivative& checked);

/// `input 0, element [1]: analytic .., numeric .. +- .., relative error .., tolerance ..`
std::string describe(const CheckedDerivative& checked, double tolerance);

/// A line `f does not depend on ..` for every input whose derivatives are all zero as far as differences can tell.
std::string without_influence(const std::vector<CheckedDerivative>& all);

}  // namespace braid::detail

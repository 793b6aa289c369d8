#pragma once
#include <optional>
#include <string>
#include <vector>

#include <braid/autograd/verify/detail/trials.h>

namespace braid::detail {

/// What makes a derivative wrong.
struct Blame {
  std::string sentence;
  std::optional<std::size_t> op = {};  // its index, if it is one
};

/// The op whose vjp makes the gradient of <dy, f(inputs)> wrong.
///
/// f runs again with every recorded op isolated from the others: the result of each op is replaced by the recorded one,
/// moved along a random direction. So one run moves the inputs of all ops and shows the derivative of each, and a dozen
/// runs compare every vjp of f with differences, however many there are. The wrong op nearest to the output is then
/// checked input by input and element by element.
Blame blame(const GradcheckFunction& f, List<Tensor> inputs, const Tensor& dy, const GradcheckOptions& options,
            double amplification);

/// The op whose rule makes second derivatives of f wrong: the one nearest to the output that
/// gives other cotangents than its vjp, or whose derivatives are not those of its vjp. As in blame(), f runs again with
/// every op isolated from the others, a dozen times however many there are.
Blame blame_rules(const GradcheckFunction& f, List<Tensor> inputs, double tolerance, std::uint64_t seed);

/// `op 'rms_norm' (#37 of 112)`
std::string place_of(const Recording& base, std::size_t op);

}  // namespace braid::detail

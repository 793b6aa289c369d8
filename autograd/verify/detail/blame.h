#pragma once
#include <optional>
#include <string>

#include <braid/autograd/verify/detail/trials.h>

namespace braid::detail {

/// What makes a derivative wrong.
struct Blame {
  std::string sentence;
  std::optional<std::size_t> op = {};  // its index on a tape of first order, if it is on one
  bool all_right = false;              // every vjp is, along random directions
};

/// The op whose vjp makes the gradient of <dy, f(inputs)> wrong. `amplification`: of rounding errors.
///
/// f runs again with every recorded op isolated from the others: the result of each op is replaced by the recorded one,
/// moved along a random direction. So one run moves the inputs of all ops and shows the derivative of each, and a dozen
/// runs compare every vjp of f with differences, however many there are. The wrong op nearest to the output is then
/// checked input by input and element by element.
Blame blame(const Subject& subject, const Tensor& dy, double amplification);

/// The op whose rule makes second derivatives of f wrong: the one nearest to the output that
/// gives other cotangents than its vjp, or whose derivatives are not those of its vjp. As in blame(), f runs again with
/// every op isolated from the others, a dozen times however many there are.
Blame blame_rules(const GradcheckFunction& f, const Subject& subject);

/// `op 'rms_norm' (#37 of 112) with norm.weight`: the inputs of f that it reads are named if they have names. An op
/// without any is `after one with norm.weight`, the last that has some.
std::string place_of(const Recording& base, std::size_t op, const Subject& subject);

}  // namespace braid::detail

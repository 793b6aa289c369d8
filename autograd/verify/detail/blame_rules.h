#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <braid/autograd/verify/verdict.h>

namespace braid::detail {

/// A sentence that names the op whose rule makes second derivatives of f wrong: the one nearest to the output that
/// gives other cotangents than its vjp, or whose derivatives are not those of its vjp. As in blame(), f runs again with
/// every op isolated from the others, a dozen times however many there are.
std::string blame_rules(const GradcheckFunction& f, const std::vector<Tensor>& inputs, double tolerance,
                        std::uint64_t seed);

}  // namespace braid::detail

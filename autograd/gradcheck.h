#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>

namespace braid {

/// The defaults suit functions whose arguments and derivatives are of order one.
struct GradcheckOptions {
  double tolerance = 1e-6;          ///< the largest relative error that passes
  double step = 1e-4;               ///< of the differences, times max(1, |x|)
  std::int64_t max_elements = 256;  ///< inputs with more elements are checked along random directions
  int directions = 16;              ///< how many of these
  std::uint64_t seed = 0;           ///< of the directions and of the output's cotangent
};

struct GradcheckResult {
  bool ok = true;
  double worst = 0;              ///< the largest relative error
  std::int64_t derivatives = 0;  ///< how many were compared
  std::string message;           ///< where the worst one is, with both values
  explicit operator bool() const { return ok; }
};

using GradcheckFunction = std::function<Var(std::span<const Var>)>;

/// Compares the gradients of `f` on a tape with fourth-order central differences, in f64, for every element of every
/// input. An output of any shape is contracted with a random cotangent. `f` must be smooth near the inputs.
///
///     EXPECT_TRUE(gradcheck([](auto x) { return mul(x[0], x[1]); }, {a, b}));
///
/// Relative error: |analytic - numeric| / max(|analytic|, |numeric|, s), where s is the largest analytic gradient of
/// that input, kept within [1e-3, 1] so that zeros are compared absolutely; infinite when a value is NaN or Inf.
/// `names` are the words for the inputs in messages, else `input 0`, ... Throws DTypeError unless all is f64.
GradcheckResult gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {}, const std::vector<std::string>& names = {});

/// The same for every parameter of a copy of `module`, by name: `gradcheck_module(m, [&](const M& m) { return m(x);
/// })`.
template <Parametric M, class F>
GradcheckResult gradcheck_module(const M& module, const F& f, const GradcheckOptions& options = {}) {
  std::vector<Tensor> values;
  std::vector<std::string> names;
  for_each_param(module, [&](const std::string& name, const Var& param) {
    values.push_back(param.value());
    names.push_back(name);
  });
  const auto with_params = [&](std::span<const Var> params) -> Var {
    M copy = module;
    auto next = params.begin();
    for_each_param(copy, [&](const std::string&, Var& param) { param = *next++; });
    return f(std::as_const(copy));
  };
  return gradcheck(with_params, values, options, names);
}

}  // namespace braid

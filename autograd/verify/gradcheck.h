#pragma once
#include <span>
#include <string>
#include <vector>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/verify/verdict.h>

namespace braid {

/// Compares the gradients of `f` on a tape with derivatives extrapolated from differences in f64, whose accuracy is
/// estimated as well: for every element of every input, and along random directions over all inputs. An output of any
/// shape is contracted with a random cotangent.
///
///     EXPECT_TRUE(gradcheck([](auto x) { return mul(x[0], x[1]); }, {a, b}));
///
/// Relative error: |analytic - numeric| / max(|analytic|, |numeric|, s), where s is a thousandth of the largest
/// gradient of that input. `Verdict::wrong` and `Verdict::unchecked` fail; kinks and undecidable derivatives are
/// counted separately. By rules, <J^T w, v> by the vjps is compared with <w, J v> by the rules for random v and w, and
/// s is a thousandth of their terms; the tolerance is 1e-13 or what rounding explains, and the verdict unchecked if
/// that is more than 1e-3 due to f32 or bf16. When a gradient is wrong, each vjp is compared with differences of its
/// op, and the message ends with the wrong one nearest to the output:
///
///     first wrong vjp: op 'rms_norm' (#37 of 112) with norm.weight, input 1 [8], element [3]: analytic 1, numeric 2
///
/// The check also fails, with a sentence that says why, when f is not deterministic, forward or backward, changes its
/// inputs, or returns NaN or Inf. `names` name the inputs in messages, by default `input 0`, ... Throws DTypeError
/// unless all is f64, ValueError unless order is 1 or 2.
GradcheckResult gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {}, const std::vector<std::string>& names = {});

/// The same for every parameter of a copy of `module`, by name:
///
///     gradcheck_module(model, [&](const Model& m) { return m(x); });
///
/// Large parameters, groups (`blocks.3`) and all of them are checked along random directions: models take minutes.
GradcheckResult gradcheck_module(const auto& module, const auto& f, const GradcheckOptions& options = {}) {
  std::vector<Tensor> values;
  std::vector<std::string> names;
  for_each_param(module, [&](const std::string& name, const Var& param) {
    values.push_back(param.value());
    names.push_back(name);
  });
  const auto with_params = [&](std::span<const Var> params) -> Var {
    const auto copy = detail::with_vars(module, {params.begin(), params.end()});
    return f(copy);
  };
  return gradcheck(with_params, values, options, names);
}

}  // namespace braid

#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>

namespace braid {

/// There is no step to choose: inputs of size 1e-6 to 1e6 and functions of any scale work with the defaults.
struct GradcheckOptions {
  double tolerance = 1e-6;          ///< the largest relative error that is right
  std::int64_t max_elements = 256;  ///< inputs with more elements are checked along random directions
  int directions = 16;              ///< how many of these
  std::uint64_t seed = 0;           ///< of the directions and of the output's cotangent
  bool blame = true;                ///< look for the vjp at fault when a gradient is wrong
  /// Told how many derivatives of how many are done.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// What a comparison of an analytic derivative with differences comes to.
enum class Verdict {
  right,        ///< they agree within the tolerance
  wrong,        ///< they differ by more, and the differences are certain enough to say so
  undecidable,  ///< the differences are less certain than the tolerance asks for
  kink,  ///< not differentiable there; the analytic value lies between the one-sided derivatives, or is right beside
};
/// `right`, `wrong`, ..
std::string_view name(Verdict verdict);

/// One derivative, analytic and numeric.
struct CheckedDerivative {
  std::string input = {}, where = {};  ///< the input's name, and the element or direction
  double analytic = 0, numeric = 0;    ///< by the vjp, and by differences
  double uncertainty = 0;              ///< an estimate of the error of `numeric`
  double relative_error = 0;           ///< of `analytic`; infinite when it is NaN or Inf
  Verdict verdict = Verdict::right;    ///< what they come to
};

/// What gradcheck found.
struct GradcheckResult {
  bool ok = true;                                      ///< no derivative is wrong, and f can be checked
  double worst = 0;                                    ///< the largest relative error of what is right or wrong
  std::int64_t derivatives = 0;                        ///< how many were compared
  std::int64_t wrong = 0, undecidable = 0, kinks = 0;  ///< how many of each verdict
  std::string message = {};  ///< the worst one with both values; what is odd about f; when wrong, last the vjp at fault
  std::vector<CheckedDerivative> checked = {};   ///< all that were compared
  explicit operator bool() const { return ok; }  ///< ok

  /// A line for every input: how many derivatives, and the worst of them.
  std::string table() const;
};

/// What gradcheck takes: a function of its inputs in their order.
using GradcheckFunction = std::function<Var(std::span<const Var>)>;

/// Compares the gradients of `f` on a tape with derivatives that are extrapolated from differences in f64 and know
/// their own error, for every element of every input, and along random directions over all of them. An output of any
/// shape is contracted with a random cotangent.
///
///     EXPECT_TRUE(gradcheck([](auto x) { return mul(x[0], x[1]); }, {a, b}));
///
/// Relative error: |analytic - numeric| / max(|analytic|, |numeric|, s), where s is a thousandth of the largest
/// gradient of that input. Only `Verdict::wrong` fails; kinks and what the differences cannot decide are counted apart.
/// When a gradient is wrong, every recorded vjp is compared with differences of its own op, and the message ends with
/// the one nearest to the output that is wrong:
///
///     first wrong vjp: op 'rms_norm' (#37 of 112), input 1 [8], element [3]: analytic 0.25, numeric 0.5
///
/// An f that is not deterministic, forward or backward, changes its inputs or returns NaN fails with a sentence that
/// says so.
/// `names` are the words for the inputs in messages, else `input 0`, ... Throws DTypeError unless all is f64.
GradcheckResult gradcheck(const GradcheckFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {}, const std::vector<std::string>& names = {});

/// The same for every parameter of a copy of `module`, by name: `gradcheck_module(m, [&](const M& m) { return m(x);
/// })`. Large parameters, groups of parameters (`blocks.3`) and all of them are checked along random directions, so
/// that whole models take minutes.
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

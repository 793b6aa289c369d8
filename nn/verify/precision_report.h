#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>

namespace braid::nn {

/// The errors of a model's gradients against those of the same model in f64, and the ops that cause them. Errors are
/// relative in the 2-norm, |g - g64| / |g64|. The contribution of an op is the change of the gradients by its own
/// rounding, forward and backward; its share of the error is the projection of that change on the error. The shares add
/// up to 1, except for effects that are not linear in the rounding; a negative share cancels others. `accumulate` is
/// the summation of cotangents of values that several ops read.
struct PrecisionReport {
  /// The gradient of a parameter.
  struct Row {
    std::string name;           ///< of the parameter
    double gradient = 0;        ///< |g64|
    double relative_error = 0;  ///< of the parameter's gradient
    double max_ulps = 0;        ///< see precision_report()
    /// The op with the largest share, or that made the first NaN or Inf; empty without an error.
    std::string worst_op = {};
    double share = 0;  ///< the share of worst_op
  };
  /// All calls of an op.
  struct Op {
    std::string name;           ///< as recorded on the tape
    double relative_error = 0;  ///< of all gradients, when no other op rounds
    double share = 0;           ///< of the error
  };

  DType dtype = DType::f32;
  double loss = 0;             ///< in f64
  double loss_error = 0;       ///< relative
  double relative_error = 0;   ///< of all gradients together
  double remainder = 0;        ///< the part of the error that no op explains, relative to it
  std::vector<Op> ops = {};    ///< by share, the largest first; without ops that do not round
  std::vector<Row> rows = {};  ///< one per parameter, in the module's order

  /// A printable table of the ops and of the parameters with the largest errors, at most `most_rows` of them.
  std::string table(std::size_t most_rows = 20) const;
};

namespace detail {
/// A loss of parameters that have this dtype.
using LossFunction = std::function<Var(std::span<const Var> params, DType dtype)>;

PrecisionReport precision_report(const LossFunction& loss, const std::vector<NamedParam>& params, DType dtype);
}  // namespace detail

/// Measures the gradients of `loss(module)`, a scalar, with all parameters in `dtype`, f32 or f64. Takes about one step
/// in f64 for each kind of op: the error of a kind is measured by adding its rounding to a run without any other.
///
///     fmt::print("{}", precision_report(model, [&](const Model& m) { return m.loss(tokens, targets); }).table());
///
/// The loss is evaluated in both dtypes. It has to convert floating-point inputs and may take the dtype as an argument:
/// `[&](const Model& m, DType dtype) { return mse_loss(m(x.to(dtype)), y.to(dtype)); }`.
///
/// max_ulps is the largest error of an element in units of the last place of `dtype` at the size of its f64 value;
/// elements below a 1024th of the parameter's largest count as if they were of that size. NaN where a gradient is not
/// finite.
/// Throws ShapeError unless the loss is a scalar, Error when it is not deterministic or its ops depend on the dtype.
template <class M, class F>
PrecisionReport precision_report(const M& module, const F& loss, DType dtype = DType::f32) {
  M copy = module;
  const std::vector<NamedParam> params = named_params(copy);
  const auto with_params = [&](std::span<const Var> values, DType now) -> Var {
    for (std::size_t i = 0; i < params.size(); ++i) *params[i].param = values[i];
    if constexpr (std::is_invocable_v<const F&, const M&, DType>)
      return loss(std::as_const(copy), now);
    else
      return loss(std::as_const(copy));
  };
  return detail::precision_report(with_params, params, dtype);
}

}  // namespace braid::nn

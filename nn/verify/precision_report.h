#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/nn/verify/detail/op_rounding.h>

namespace braid::nn {

/// How far the gradients of a model are from those of the same model in f64, and which ops are to blame. Errors are
/// relative in the 2-norm, |g - g64| / |g64|. An op adds what its own rounding, forward and backward, changes in the
/// gradients, and its share of the error is the projection of that on the error: the shares add up to 1, but for what
/// is not linear in the rounding, and one below 0 makes up for others. `accumulate` is the sum of the cotangents of
/// what several ops have read.
struct PrecisionReport {
  /// The gradient of a parameter.
  struct Row {
    std::string name;           ///< of the parameter
    double gradient = 0;        ///< |g64|
    double relative_error = 0;  ///< of this gradient
    double max_ulps = 0;        ///< see below
    std::string worst_op = {};  ///< what adds most; the op that made the first NaN or Inf; empty without an error
    double share = 0;           ///< its share of the error
  };
  /// All calls of an op.
  struct Op {
    std::string name;           ///< as it is recorded
    double relative_error = 0;  ///< of all gradients, when no other op rounds
    double share = 0;           ///< of the error
  };

  DType dtype = DType::f32;
  double loss = 0;             ///< in f64
  double loss_error = 0;       ///< relative
  double relative_error = 0;   ///< of all gradients together
  double remainder = 0;        ///< what the ops do not explain of the error, relative to it
  std::vector<Op> ops = {};    ///< the largest share first; those that do not round are left out
  std::vector<Row> rows = {};  ///< one per parameter, as the module has them

  /// For people: the ops and the parameters with the largest errors, at most `most_rows`.
  std::string table(std::size_t most_rows = 20) const;
};

namespace detail {
PrecisionReport precision_report(const LossFunction& loss, const std::vector<NamedParam>& params, DType dtype);
}  // namespace detail

/// Measures the gradients of `loss(module)`, a scalar, with all parameters in `dtype`. It takes about as many steps in
/// f64 as there are kinds of ops, one after the other: the errors are measured by putting the rounding of one kind into
/// a run that has no other.
///
///     fmt::print("{}", precision_report(model, [&](const Model& m) { return m.loss(tokens, targets); }).table());
///
/// The loss is evaluated in both dtypes. Where it has floating-point inputs, let it convert them; it may ask for the
/// dtype: `[&](const Model& m, DType dtype) { return mse_loss(m(x.to(dtype)), y.to(dtype)); }`.
///
/// max_ulps is the largest error of an element in units of the last place of `dtype` at the size of its f64 value;
/// elements below a 1024th of the parameter's largest count as if they were of that size. NaN where a gradient is not
/// finite.
/// Throws ShapeError unless the loss is a scalar, Error when it is not deterministic or its ops depend on the dtype.
template <Parametric M, class F>
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

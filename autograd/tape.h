#pragma once
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/autograd/check_finite.h>
#include <braid/autograd/probe.h>
#include <braid/autograd/var.h>

namespace braid {

class Drawing;

/// The ops of one evaluation in execution order, and after backward() the gradients of what it watched.
///
///     Tape tape;
///     const Var w = tape.watch(weights);
///     tape.backward(sum(w * w));
///     Tensor dw = tape.gradient(w);
///
/// Of first order: a vjp runs on constants, and gradients are constants; one backward() per tape. In a HigherOrder
/// scope (derivatives.h) a tape also serves grad() and its kin, whose results are variables on it.
class Tape {
 public:
  /// `probe` sees what is recorded and propagated.
  explicit Tape(Probe* probe = nullptr);

  /// `value`, of any shape, as a variable with a gradient. Throws DTypeError for i32, Error if undefined.
  Var watch(const Tensor& value);

  /// Propagates the cotangent of `y`, of its shape (ones for a scalar), to everything watched. Runs each vjp once, last
  /// first, freeing what it saved. Throws ShapeError or DTypeError unless dy fits y, Error when run twice or for y of
  /// another tape.
  void backward(const Var& y, Tensor dy = {});
  /// The same for a scalar y; passes each gradient to `sink` as soon as it is final, while vjps of earlier ops are
  /// still to run. gradient() then has none. Of those final together, that of the last watched variable comes first.
  void backward(const Var& y, const GradientSink& sink);
  /// The same for several outputs at once, with a sink or without; undefined cotangents are zero.
  void backward(std::span<const Var> ys, std::span<const Tensor> dys, const GradientSink& sink = {});

  /// The gradient of a watched variable, shaped like it; zeros when y does not depend on it. Throws Error before
  /// backward(), after one that threw or that used a sink, and for the result of an op.
  Tensor gradient(const Var& watched) const;

  /// Whether a cotangent came to a watched variable of any shape, perhaps zeros. Throws Error where gradient() does.
  bool reaches(const Var& watched) const;

  /// The number of recorded ops.
  std::size_t size() const;

 private:
  friend Drawing draw(const Tape& tape);

  Tensor cotangent(const char* op, const Var& watched) const;

  std::shared_ptr<detail::TapeState> state_;
};

/// Records `outputs = op(inputs)`, of any shapes; constants when no input is on a tape. Every op ends with it, yours
/// too. Throws Error when the inputs are on different tapes.
std::vector<Var> record(const char* op, std::vector<Tensor> outputs, List<Var> inputs, Vjp vjp,
                        std::optional<Deferral> deferral = {}, Rule rule = {});

namespace detail {

/// Converts to Var, but not to Tensor.
struct AnyVar {
  operator const Var&() const;
};

/// A vjp that takes its cotangent as a Var, not as `auto`, whose operator() has no address: it is linear in it, without
/// captured values, and its own rule.
template <class F>
concept OfVars = requires { &F::operator(); } &&
                 (std::is_invocable_v<const F&, AnyVar> || std::is_invocable_v<const F&, AnyVar, const Needs&>);

/// Records `outputs = op(inputs)` as record() above does, and makes `outputs`, constants until then, its results.
void record(const char* op, std::span<Var> outputs, List<Var> inputs, Vjp vjp, std::optional<Deferral> deferral,
            Rule rule);

/// Whether record() would only return the results: no input is on a tape, and CheckFinite is off.
bool only_computes(std::span<const Var> inputs);
/// Whether an input is on a tape of higher order.
bool of_higher_order(std::span<const Var> inputs);
/// Whether a probe on the tape of these variables opens checkpoints.
bool opens_checkpoints(std::span<const Var> inputs);

/// What a vjp or a rule returned, one cotangent or several, as T.
template <class T, class Cotangents>
std::vector<T> cotangents(Cotangents result) {
  if constexpr (std::is_same_v<Cotangents, std::vector<T>>)
    return result;
  else if constexpr (std::is_convertible_v<Cotangents, T>)
    return {std::move(result)};
  else
    return {std::make_move_iterator(result.begin()), std::make_move_iterator(result.end())};
}

/// What `vjp(dy, needs)` or `vjp(dy)` returns, likewise.
template <class T, class F>
std::vector<T> call_vjp(const F& vjp, const T& dy, const Needs& needs) {
  if constexpr (std::is_invocable_v<const F&, const T&, const Needs&>)
    return cotangents<T>(vjp(dy, needs));
  else
    return cotangents<T>(vjp(dy));
}

}  // namespace detail

/// For one output. `vjp(dy)` or `vjp(dy, needs)` returns one cotangent per input, Tensors or constant Vars: a vector or
/// an array of them, or the only one:
///
///     return record("square", y, {x}, [x = x.value()](const Tensor& dy) { return 2 * dy * x; },
///                   [](const Applied& op) { return 2 * op.dy() * op.x(); });
///
/// The rule, likewise, returns Vars; without it, asking for a second derivative throws Error. A vjp that uses no values
/// but dy needs none if it takes dy as a Var: `[](const Var& dy) { return -dy; }`.
template <class F, class R = std::nullptr_t>
  requires(!std::is_convertible_v<F, Vjp>)
Var record(const char* op, Tensor output, List<Var> inputs, F vjp, R rule = {}) {
  if (detail::only_computes(inputs)) return output;
  Rule adapted_rule;
  if (detail::of_higher_order(inputs)) {
    if constexpr (!std::is_null_pointer_v<R>)
      adapted_rule = [rule = std::move(rule)](const Applied& at) { return detail::cotangents<Var>(rule(at)); };
    else if constexpr (detail::OfVars<F>)
      adapted_rule = [vjp](const Applied& at) { return detail::call_vjp(vjp, at.dy(), at.needs); };
  }
  auto adapted = [vjp = std::move(vjp)](std::span<const Tensor> dys, const Needs& needs) {
    return detail::call_vjp(vjp, dys.front(), needs);
  };
  Var result = std::move(output);
  detail::record(op, {&result, 1}, inputs, std::move(adapted), {}, std::move(adapted_rule));
  return result;
}

}  // namespace braid

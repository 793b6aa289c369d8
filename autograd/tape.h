#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/autograd/probe.h>
#include <braid/core/tensor.h>

namespace braid {

namespace detail {
struct TapeState;
}

/// What ops take and return: a tensor that is a constant or recorded on a tape. A value, cheap to copy. Constants and
/// Tensors convert to each other, so that ops compute with plain Tensors as well: `Tensor y = exp(a) + 2 * b;`.
class Var {
 public:
  Var() = default;
  Var(Tensor value) : value_(std::move(value)) {}
  Var(const Var&) = default;
  Var(Var&&) = default;
  // Not to temporaries: `x[0] = y` would assign to a copy.
  Var& operator=(const Var&) & = default;
  Var& operator=(Var&&) & = default;
  /// Throws Error on a tape, where a gradient would get lost unseen: write `detach(x)` or `x.value()` to drop it.
  operator Tensor() const;
  const Tensor& value() const { return value_; }         ///< the tensor, without a gradient
  const Shape& shape() const { return value_.shape(); }  ///< shape of the value
  DType dtype() const { return value_.dtype(); }         ///< dtype of the value
  int rank() const { return value_.rank(); }             ///< number of axes
  std::int64_t size(int axis) const {
    return value_.size(axis);
  }  ///< size of an axis; negative axes count from the end
  /// The only element. Throws ShapeError when there are more or none.
  double item() const { return value_.item(); }
  /// Whether it is on a tape.
  bool requires_grad() const { return tape_ != nullptr; }

  /// `x[i]` is `select(x, 0, i)`.
  Var operator[](std::int64_t position) const;

  /// For optimizers and initializers, which update parameters in place. Throws Error when on a tape.
  Tensor& mutable_value();

 private:
  friend struct detail::TapeState;
  friend class Tape;
  Tensor value_;
  std::shared_ptr<detail::TapeState> tape_;
  ValueId id_ = 0;
};

/// The same value as a constant: no gradient flows through it.
inline Var detach(const Var& x) { return x.value(); }

/// Which inputs of an op need a cotangent, in order; a vjp may return an undefined Tensor for the others.
class Needs {
 public:
  explicit Needs(std::vector<bool> flags) : flags_(std::move(flags)) {}
  bool operator[](std::size_t input) const { return flags_[input]; }  ///< whether this input does

 private:
  std::vector<bool> flags_;
};

/// Maps the cotangents of an op's outputs to those of its inputs, in order. An undefined cotangent is zero;
/// others have the shape and dtype of their outputs or inputs.
/// Runs at most once; its captures are then freed. It captures tensors, never variables on a tape. It owns the
/// cotangents: it may move them out and write into those that are not shared.
using Vjp = std::function<std::vector<Tensor>(std::span<Tensor> dys, const Needs& needs)>;

/// Takes the gradient of the variable that was watched as number `watched`, zeros where y does not depend on it.
using GradientSink = std::function<void(std::size_t watched, Tensor gradient)>;

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

  /// `value` as a variable whose gradient the backward pass computes.
  Var watch(const Tensor& value);

  /// Propagates the cotangent of `y` (ones for a scalar) to everything watched. Runs each vjp once, last first,
  /// freeing what it saved. Throws ShapeError when dy does not fit y, Error when run twice or y is on another tape.
  void backward(const Var& y, Tensor dy = {});
  /// The same for a scalar y; passes each gradient to `sink` as soon as it is final, while vjps of earlier ops are
  /// still to run. gradient() then has none. Of gradients that become final together, that of the last watched variable
  /// comes first.
  void backward(const Var& y, const GradientSink& sink);
  /// The same for several outputs at once; undefined cotangents are zero.
  void backward(std::span<const Var> ys, std::span<const Tensor> dys);

  /// The gradient of a watched variable; zeros when y does not depend on it. Throws Error before backward(), after one
  /// that threw or that used a sink, and for the result of an op.
  Tensor gradient(const Var& watched) const;

  /// The number of recorded ops.
  std::size_t size() const;

 private:
  void backward(std::span<const Var> ys, std::span<const Tensor> dys, const GradientSink* sink);

  std::shared_ptr<detail::TapeState> state_;
};

/// An op on a tape of higher order, as its rule sees it: all are variables, or constants that need no cotangent.
struct Applied {
  std::span<const Var> inputs, outputs;  ///< of the op
  std::span<const Var> dys;              ///< the cotangents of the outputs; undefined ones are zero
  const Needs& needs;                    ///< the inputs that need a cotangent

  const Var& x(std::size_t input = 0) const { return inputs[input]; }  ///< an input
  const Var& y() const { return outputs.front(); }                     ///< the first output
  const Var& dy() const { return dys.front(); }                        ///< its cotangent
};

/// A vjp made of ops, which derivatives of higher order differentiate again: returns the cotangents of the inputs as
/// variables. It may run several times; it captures settings and constants, never variables on a tape.
using Rule = std::function<std::vector<Var>(const Applied&)>;

/// Records `outputs = op(inputs)`; gives constants when no input is on a tape. Every op ends with it, yours too.
/// Throws Error when the inputs are on different tapes.
std::vector<Var> record(const char* op, std::vector<Tensor> outputs, std::span<const Var> inputs, Vjp vjp,
                        std::optional<Deferral> deferral = {}, Rule rule = {});

namespace detail {

struct NoRule {};

/// Converts to Var, but not to Tensor.
struct AnyVar {
  operator const Var&() const;
};

/// Whether a vjp takes its cotangent as a Var: then it is linear in it, without captured values, and its own rule.
template <class F>
constexpr bool kOfVars = std::is_invocable_v<const F&, AnyVar> || std::is_invocable_v<const F&, AnyVar, const Needs&>;

/// Whether an input is on a tape of higher order.
bool of_higher_order(std::span<const Var> inputs);

/// What a vjp or a rule returned, one cotangent or several, as T.
template <class T, class Cotangents>
std::vector<T> cotangents(Cotangents result) {
  if constexpr (std::is_same_v<Cotangents, std::vector<T>>)
    return result;
  else if constexpr (std::is_convertible_v<Cotangents, T>)
    return {std::move(result)};
  else
    return {result.begin(), result.end()};
}

template <class F, class Dy>
auto call_vjp(const F& vjp, const Dy& dy, const Needs& needs) {
  if constexpr (std::is_invocable_v<const F&, const Dy&, const Needs&>)
    return vjp(dy, needs);
  else
    return vjp(dy);
}

}  // namespace detail

/// For one output. `vjp(dy)` or `vjp(dy, needs)` returns one cotangent per input, Tensors or constant Vars: a vector of
/// them, or the only one:
///
///     return record("square", y, {x}, [x = x.value()](const Tensor& dy) { return 2 * dy * x; },
///                   [](const Applied& op) { return 2 * op.dy() * op.x(); });
///
/// The rule, likewise, returns Vars; without it, asking for a second derivative throws Error. A vjp that uses no values
/// but dy needs none if it takes dy as a Var: `[](const Var& dy) { return -dy; }`.
template <class F, class R = detail::NoRule>
  requires(!std::is_convertible_v<F, Vjp>)
Var record(const char* op, Tensor output, std::span<const Var> inputs, F vjp, R rule = {}) {
  Rule adapted_rule;
  if (detail::of_higher_order(inputs)) {
    if constexpr (!std::is_same_v<R, detail::NoRule>)
      adapted_rule = [rule = std::move(rule)](const Applied& at) { return detail::cotangents<Var>(rule(at)); };
    else if constexpr (detail::kOfVars<F>)
      adapted_rule = [vjp](const Applied& at) {
        return detail::cotangents<Var>(detail::call_vjp(vjp, at.dy(), at.needs));
      };
  }
  auto adapted = [vjp = std::move(vjp)](std::span<const Tensor> dys, const Needs& needs) {
    return detail::cotangents<Tensor>(detail::call_vjp(vjp, dys.front(), needs));
  };
  return std::move(
      record(op, std::vector<Tensor>{std::move(output)}, inputs, Vjp(std::move(adapted)), {}, std::move(adapted_rule))
          .front());
}

template <class F, class R = detail::NoRule>
Var record(const char* op, Tensor output, std::initializer_list<Var> inputs, F vjp, R rule = {}) {
  return record(op, std::move(output), std::span<const Var>(inputs.begin(), inputs.size()), std::move(vjp),
                std::move(rule));
}

/// While one is alive, the first op of this thread that produces NaN or Inf, forward or backward, throws
/// NonFiniteError naming the op and its input shapes.
class CheckFinite {
 public:
  CheckFinite();
  ~CheckFinite();
  CheckFinite(const CheckFinite&) = delete;
  CheckFinite& operator=(const CheckFinite&) = delete;
};

/// Thrown when CheckFinite finds a NaN or an infinity.
struct NonFiniteError : Error {
  using Error::Error;
};

}  // namespace braid

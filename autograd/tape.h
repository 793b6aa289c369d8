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
/// First-order only: a vjp runs on constants. One backward() per tape.
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

/// Records `outputs = op(inputs)`; gives constants when no input is on a tape. Every op ends with it, yours too:
///
///     return record("square", y, {x}, [x = x.value()](const Tensor& dy) { return 2 * dy * x; });
///
/// Throws Error when the inputs are on different tapes.
std::vector<Var> record(const char* op, std::vector<Tensor> outputs, std::span<const Var> inputs, Vjp vjp,
                        std::optional<Deferral> deferral = {});

/// For one output. `vjp(dy)` or `vjp(dy, needs)` returns one cotangent per input, Tensors or constant Vars: a vector of
/// them, or the only one.
template <class F>
  requires(!std::is_convertible_v<F, Vjp>)
Var record(const char* op, Tensor output, std::span<const Var> inputs, F vjp) {
  auto adapted = [vjp = std::move(vjp)](std::span<const Tensor> dys, const Needs& needs) -> std::vector<Tensor> {
    auto call = [&] {
      if constexpr (std::is_invocable_v<const F&, const Tensor&, const Needs&>)
        return vjp(dys.front(), needs);
      else
        return vjp(dys.front());
    };
    auto dxs = call();
    if constexpr (std::is_same_v<decltype(dxs), std::vector<Tensor>>)
      return dxs;
    else if constexpr (std::is_same_v<decltype(dxs), std::vector<Var>>)
      return {dxs.begin(), dxs.end()};
    else
      return {std::move(dxs)};
  };
  return std::move(record(op, std::vector<Tensor>{std::move(output)}, inputs, Vjp(std::move(adapted))).front());
}

template <class F>
Var record(const char* op, Tensor output, std::initializer_list<Var> inputs, F vjp) {
  return record(op, std::move(output), std::span<const Var>(inputs.begin(), inputs.size()), std::move(vjp));
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

#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <braid/autograd/probe.h>
#include <braid/core/tensor.h>

namespace braid {

namespace detail {
struct TapeState;
}

/// What ops take and return: a tensor of any shape, a constant or recorded on a tape. A value, cheap to copy. Constants
/// and Tensors convert to each other, so that ops compute with plain Tensors as well: `Tensor y = exp(a) + 2 * b;`.
class Var {
 public:
  Var() = default;
  Var(Tensor value) : value_(std::move(value)) {}  ///< a constant
  Var(const Var&) noexcept;
  Var(Var&&) noexcept;
  // Not to temporaries: `x[0] = y` would assign to a copy.
  Var& operator=(const Var&) & noexcept;
  Var& operator=(Var&&) & noexcept;
  ~Var();
  /// Throws Error on a tape, where a gradient would get lost unseen: write `detach(x)` or `x.value()` to drop it.
  operator Tensor() const;
  const Tensor& value() const& { return value_; }          ///< the tensor, without a gradient
  Tensor value() && { return std::move(value_); }          ///< of a temporary: the tensor itself, which outlives it
  const Shape& shape() const& { return value_.shape(); }   ///< shape of the value
  Shape shape() && { return value_.shape(); }              ///< of a temporary: a copy
  bool requires_grad() const { return tape_ != nullptr; }  ///< whether it is on a tape
  /// For optimizers and initializers, which update parameters in place. Throws Error when on a tape.
  Tensor& mutable_value() &;

  // The members of Tensor, but for those of its memory (`x.value().data<float>()`): code for Tensors takes variables.
  bool defined() const { return value_.defined(); }      ///< whether the value has a storage
  DType dtype() const { return value_.dtype(); }         ///< dtype of the value
  int rank() const { return value_.rank(); }             ///< number of axes
  std::int64_t numel() const { return value_.numel(); }  ///< number of elements
  /// The size of an axis; negative axes count from the end. Throws ShapeError if there is no such axis.
  std::int64_t size(int axis) const { return value_.size(axis); }
  /// The only element. Throws ShapeError when there are more or none.
  double item() const { return value_.item(); }
  /// The element at an index, one entry per axis; negative ones count from the end. Throws ShapeError if there is none.
  double at(std::initializer_list<std::int64_t> index) const { return value_.at(index); }
  /// The elements, row-major, converted to T.
  template <class T>
  std::vector<T> to_vector() const {
    return value_.to_vector<T>();
  }

  // Ops, defined beside the functions of the same names, which throw the same errors.
  Var operator[](std::int64_t position) const;            ///< `x[i]` is `select(x, 0, i)`
  Var permute(List<int> axes) const;                      ///< `permute(x, axes)`
  Var transpose(int axis_a = -2, int axis_b = -1) const;  ///< `transpose(x, axis_a, axis_b)`
  Var select(int axis, std::int64_t position) const;      ///< `select(x, axis, position)`
  Var broadcast_to(const Shape& shape) const;             ///< `broadcast_to(x, shape)`
  Var expand_dims(int axis) const;                        ///< `expand_dims(x, axis)`
  Var squeeze(int axis) const;                            ///< `squeeze(x, axis)`
  Var reshape(List<std::int64_t> sizes) const;            ///< `reshape(x, sizes)`
  Var to(DType dtype) const;                              ///< `cast(x, dtype)`
  /// `slice(x, axis, begin, end, step)`
  Var slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const;

 private:
  friend struct detail::TapeState;
  Tensor value_;
  std::shared_ptr<detail::TapeState> tape_;
  ValueId id_ = 0;
};

/// The value of x, of any shape, as a constant: no gradient flows through it.
inline Var detach(const Var& x) { return x.value(); }

/// Which inputs of an op need a cotangent, in order; a vjp may return an undefined Tensor for the others.
using Needs = std::vector<bool>;

/// Maps the cotangents of an op's outputs to those of its inputs, in order. An undefined cotangent is zero; others have
/// the shape and dtype of their outputs or inputs. Runs at most once; its captures are then freed. It captures tensors,
/// never variables on a tape. It owns the cotangents: it may move them out and write into those that are not shared.
using Vjp = std::function<std::vector<Tensor>(std::span<Tensor> dys, const Needs& needs)>;

/// Takes the gradient of the variable that was watched as number `watched`, zeros where y does not depend on it.
using GradientSink = std::function<void(std::size_t watched, Tensor gradient)>;

/// An op on a tape of higher order, of any shapes, as its rule sees it. Inputs that are constants need no cotangent.
struct Applied {
  std::span<const Var> inputs, outputs;  ///< of the op, as variables of any shape
  std::span<const Var> dys;  ///< cotangents, shaped like the outputs; undefined ones, of some of several, are zero
  const Needs& needs;        ///< the inputs that need a cotangent

  const Var& x(std::size_t input = 0) const { return inputs[input]; }  ///< an input
  const Var& y() const { return outputs.front(); }                     ///< the first output
  const Var& dy() const { return dys.front(); }                        ///< its cotangent
};

/// A vjp made of ops, which derivatives of higher order differentiate again: returns the cotangents of the inputs as
/// variables. It may run several times. It captures settings and constants, never variables: it finds those in Applied,
/// and a captured value of theirs would count as a constant, which only gradcheck with order = 2 notices.
using Rule = std::function<std::vector<Var>(const Applied&)>;

}  // namespace braid

#pragma once
#include <braid/autograd/composed.h>
#include <braid/autograd/kernels/elementwise.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/where.h>
#include <braid/autograd/tape.h>
#include <braid/core/map.h>

namespace braid::detail {

/// The kernel `member(table)` of ElementwiseKernels on the elements of tensors of one shape.
Tensor map_kernel(const char* name, auto member, const auto&... inputs) {
  auto kernel = [=]<class T>(const T* x, auto... others) {
    member(kernels::elementwise_kernels().of<T>())(x, others...);
  };
  return map_chunks(name, kernel, inputs...);
}

/// The op on x with the kernels function(table); the vjp reads x. `derivative(x)` is that of y, made of ops.
Var elementwise(const char* name, const Var& x, auto function, auto derivative) {
  const auto forward = [function](const auto& of) { return function(of).value; };
  const auto vjp = [function](const auto& of) { return function(of).vjp; };
  return record(
      name, map_kernel(name, forward, x.value()), {x},
      [=, x = x.value()](const Tensor& dy) { return map_kernel(name, vjp, dy, x); },
      [derivative](const Applied& op) {
        return in_f32([&](const Var& dy, const Var& x) { return dy * derivative(x); }, op.dy(), op.x());
      });
}

/// The same for an op with a composed form, `compose(x)`.
Var elementwise(const char* name, const Var& x, auto function, auto compose, auto derivative) {
  check_floating(name, x.dtype());
  return Composed::active(Composed::Ops::with_rule) ? in_f32(compose, x) : elementwise(name, x, function, derivative);
}

/// Records y, computed from x element by element, whose cotangent goes on to x where passes(v), and is 0 elsewhere.
Var record_passing(const char* op, const Var& x, Tensor y, const Tensor& v, auto passes) {
  auto vjp = [passes](auto dy, auto v) { return passes(v) ? dy : decltype(dy){0}; };
  return record(
      op, std::move(y), {x}, [=](const Tensor& dy) { return map(op, vjp, dy, v); },
      [=](const Applied& at) { return where(map_truth(op, passes, v), at.dy(), 0.0); });
}

/// Records y, computed from x element by element, whose vjp(dy, x) is generic: it maps numbers and, as the rule, Vars.
Var record_of_x(const char* op, const Var& x, Tensor y, auto vjp) {
  return record(
      op, std::move(y), {x}, [=, x = x.value()](const Tensor& dy) { return map(op, vjp, dy, x); },
      [vjp](const Applied& at) { return vjp(at.dy(), at.x()); });
}

/// The same for a vjp(dy, y) that reads the result.
Var record_of_y(const char* op, const Var& x, const Tensor& y, auto vjp) {
  return record(
      op, y, {x}, [=](const Tensor& dy) { return map(op, vjp, dy, y); },
      [vjp](const Applied& at) { return vjp(at.dy(), at.y()); });
}

}  // namespace braid::detail

#pragma once
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/autograd/composed.h>
#include <braid/autograd/params.h>
#include <braid/autograd/value_and_grad.h>

namespace braid {

/// While one is alive, the tapes that this thread starts are of higher order: gradients that grad(), jvp() and hvp()
/// take of variables on them are variables themselves. For losses that contain gradients:
///
///     const HigherOrder scope;
///     auto [loss, grads] = value_and_grad([](const Model& m, const Tensor& x) {
///       const Var slope = grad([&](const Var& x) { return sum(m(x)); })(x);
///       return mean(m(x) + slope * slope);
///     })(model, x);
///
/// Such tapes record ops that have a rule (see record()); fused ops without one run their composed forms, and
/// checkpoint() keeps what it computes. Ops with neither throw Error, by name, when they are differentiated twice.
class HigherOrder {
  const Composed composed_{[] {
    Composed::State state = Composed::state();
    state.higher_order = true;
    return state;
  }()};
};

namespace detail {

/// A function that is evaluated and differentiated on a tape of higher order: on the newest one that this thread
/// records, so that the function may use variables that are on it, or else on one of its own.
class Differentiation {
 public:
  explicit Differentiation(const char* op);
  ~Differentiation();

  /// x as a new variable, which derivatives are taken with respect to. Throws Error when x is on another tape.
  Var variable(const Var& x);
  /// The cotangents of `xs` by the rules of the ops between, as variables. Undefined `dys` are zero; for a scalar y, no
  /// dys stand for 1.
  std::vector<Var> gradients(List<Var> ys, List<Var> dys, List<Var> xs);
  /// The same as what a caller gets: variables only where they depend on variables from outside, else constants, which
  /// take less time. No other gradients can be taken after `last`.
  std::vector<Var> results(List<Var> ys, List<Var> dys, List<Var> xs, bool last = true);
  /// ys as what a caller gets.
  std::vector<Var> results(std::vector<Var> ys) const;

  /// Whether this thread records a tape of higher order.
  static bool nested();

 private:
  const char* op_;
  HigherOrder scope_;
  std::shared_ptr<TapeState> tape_;
  bool nested_;
  ValueId first_;  // the first value that is not from outside
};

/// The rule of a vjp that is an op itself, on the inputs of y = compose(inputs) and dy: third derivatives by compose.
Rule rule_of_vjp(const char* op, std::function<Var(std::span<const Var>)> compose);

/// The Jacobian of y at x, which `tape` recorded.
Tensor jacobian(Differentiation& tape, const Var& y, const Var& x);

/// The variables of `params`, in order.
std::vector<Var> vars_of(const auto& params) {
  std::vector<Var> vars;
  for_each_param(params, [&](const std::string&, const Var& v) { vars.push_back(v); });
  return vars;
}

/// `params` with other variables.
auto with_vars(auto params, const std::vector<Var>& vars) {
  auto next = vars.begin();
  for_each_param(params, [&](const std::string&, Var& v) { v = *next++; });
  return params;
}

auto variables(Differentiation& tape, auto params) {
  for_each_param(params, [&](const std::string&, Var& v) { v = tape.variable(v); });
  return params;
}

/// What a function is differentiated with respect to: Tensors become Vars.
template <class P>
using Lifted = std::conditional_t<std::is_convertible_v<P, Tensor>, Var, P>;

/// By which grad() knows what it has returned.
struct GradientBase {};

}  // namespace detail

/// What grad() returns.
template <class F>
class Gradient : detail::GradientBase {
 public:
  explicit Gradient(F f) : f_(std::move(f)) {}  ///< of f

  /// The gradient of `f(given, args...)`, shaped like `given`.
  template <class P>
  detail::Lifted<P> operator()(const P& given, const auto&... args) const {
    const detail::Lifted<P> x = given;
    if constexpr (!std::is_base_of_v<detail::GradientBase, F>)
      if (!Composed::state().higher_order && !detail::Differentiation::nested())
        return detail::value_and_grad_as("grad", std::cref(f_), nullptr)(x, args...).second;
    detail::Differentiation tape("grad");
    const auto at = detail::variables(tape, x);
    const Var y = f_(at, args...);
    detail::check_scalar("grad", y);
    return detail::with_vars(x, tape.results({y}, {}, detail::vars_of(at)));
  }

 private:
  F f_;
};

/// Returns a function that computes the gradient of `f(x, args...)`, a scalar, with respect to x: a Var, a module or a
/// vector of these, in whose type it comes. It nests:
///
///     const auto cube = [](const Var& x) { return x * x * x; };
///     const double six_x = grad(grad(cube))(scalar(2.0)).item();  // 12
///
/// The gradient is a variable where x, or what f captures, is on a tape of higher order: see HigherOrder. Throws Error
/// where they are on a tape of first order, on which it would be cut off, and, except within derivatives of higher
/// order, when f does not depend on x; ShapeError unless f returns a scalar. value_and_grad() alone takes less time.
template <class F>
Gradient<F> grad(F f) {
  return Gradient<F>(std::move(f));
}

/// `[y, dy]`: `y = f(x, args...)` of any shape and the product of its Jacobian with v, which is shaped like x: how y
/// moves when x moves along v. x is a Var, a module or a vector of these. Throws Error as grad() does, ShapeError when
/// v does not fit, DTypeError for integers and a v of another dtype.
template <class F, class P>
std::pair<Var, Var> jvp(const F& f, const P& given, const std::type_identity_t<detail::Lifted<P>>& v,
                        const auto&... args) {
  detail::Differentiation tape("jvp");
  const auto at = detail::variables(tape, detail::Lifted<P>(given));
  const Var y = f(at, args...);
  // <v, J^T u> is linear in u, and its gradient is J v.
  const Var u = tape.variable(zeros(y.shape(), y.dtype()));
  const std::vector<Var> pulled_back = tape.gradients({y}, {u}, detail::vars_of(at));
  return {tape.results({y}).front(), tape.results(pulled_back, detail::vars_of(v), {u}).front()};
}

/// The product of the Hessian of `f(x, args...)`, a scalar, with v, which is shaped like x: a Var, a module or a vector
/// of these. Takes three to eight times as long as the gradient ("Benchmarks" in the manual). Throws as jvp() does,
/// and ShapeError unless f returns a scalar.
template <class F, class P>
detail::Lifted<P> hvp(const F& f, const P& given, const std::type_identity_t<detail::Lifted<P>>& v,
                      const auto&... args) {
  const detail::Lifted<P> x = given;
  detail::Differentiation tape("hvp");
  const auto at = detail::variables(tape, x);
  const Var y = f(at, args...);
  detail::check_scalar("hvp", y);
  const std::vector<Var> xs = detail::vars_of(at), gradients = tape.gradients({y}, {}, xs);
  return detail::with_vars(x, tape.results(gradients, detail::vars_of(v), xs));
}

/// All derivatives of y = f(x, args...) with respect to the elements of x: [y's shape.., x's shape..]. Runs a pass for
/// each element of y or of x, whichever are fewer. Throws Error when it depends on variables: write `x.value()`.
Tensor jacobian(const auto& f, const Var& x, const auto&... args) {
  detail::Differentiation tape("jacobian");
  const Var at = tape.variable(x);
  return detail::jacobian(tape, f(at, args...), at);
}

/// The second derivatives of f(x, args...), a scalar: [x's shape.., x's shape..]. Throws as jacobian() does,
/// and ShapeError unless f returns a scalar.
Tensor hessian(const auto& f, const Var& x, const auto&... args) { return jacobian(grad(f), x, args...); }

}  // namespace braid

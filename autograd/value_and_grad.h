#pragma once
#include <array>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include <braid/autograd/params.h>

namespace braid {

namespace detail {

/// The result of a function to differentiate as a tuple: the loss and what came with it.
template <class Result>
auto loss_and_aux(Result result) {
  if constexpr (std::is_convertible_v<Result, Var>) {
    return std::tuple<Var>(std::move(result));
  } else {
    static_assert(
        requires { std::tuple_size<Result>::value; }, "f must return a Var, or a pair or tuple with it first");
    return std::apply([](auto... fields) { return std::tuple<decltype(fields)...>(std::move(fields)...); }, result);
  }
}

/// Throws Error when x is on a tape: what follows returns constants, so that the gradient of its result would get lost.
inline void check_constant(const char* op, const std::string& path, const Var& x) {
  check<Error>(
      !x.requires_grad(),
      "{}: {} {} is on a tape, and the gradient of the result would get lost: write grad(), jvp() or hvp() in a "
      "HigherOrder scope, or x.value() for a constant",
      op, path.empty() ? "x" : path, x.shape());
}

/// Throws ShapeError unless y is a scalar.
void check_scalar(const char* op, const Var& y);

/// Whether both are on one tape.
bool share_tape(const Var& a, const Var& b);

/// Whether vjp() returns the cotangent of an argument.
template <class T>
constexpr bool kDifferentiated = std::same_as<T, Tensor> || std::same_as<T, Var>;

/// value_and_grad() of f whose messages name `op`.
auto value_and_grad_as(const char* op, auto f, Probe* probe) {
  return [op, f = std::move(f), probe]<class P>(const P& params, const auto&... args) {
    Tape tape(probe);
    P traced = params;  // copies the structure, shares the storage
    bool any = false;
    for_each_param(traced, [&](const std::string& path, Var& p) {
      check_constant(op, path, p);
      p = tape.watch(p.value());
      any = true;
    });
    auto results = loss_and_aux(f(std::as_const(traced), args...));
    const Var loss = std::get<0>(results);
    check_scalar(op, loss);
    check<Error>(loss.requires_grad() || !any,
                 "{}: the loss does not depend on the parameters; does f use the module that it is given?", op);
    tape.backward(loss);
    for_each_param(traced, [&](const std::string&, Var& p) { p = tape.gradient(p); });
    for_each_var(results, [&](Var& v) {
      if (share_tape(v, loss)) v = detach(v);
    });
    return std::apply(
        [&]<class... Aux>(const Var&, Aux&... aux) {
          using Result = std::conditional_t<sizeof...(Aux) == 0, std::pair<double, P>, std::tuple<double, P, Aux...>>;
          return Result(loss.item(), std::move(traced), std::move(aux)...);
        },
        results);
  };
}

}  // namespace detail

/// Returns a function that computes `f(params, args...)`, a scalar, and its gradient, shaped like `params`
/// (a Var, a module, or a vector of these):
///
///     auto step = value_and_grad([](const Model& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); });
///     auto [loss, grads] = step(model, x, y);
///
/// f may return more than the loss, as a pair or tuple that begins with it. The rest is returned after the gradients,
/// its variables (also those of modules and vectors) as constants unless they are on another tape:
///
///     auto step = value_and_grad([](const Model& m, const Tensor& x, const Tensor& ids) {
///       const Var logits = m(x);
///       return std::pair(cross_entropy(logits, ids), logits);
///     });
///     auto [loss, grads, logits] = step(model, x, ids);
///
/// `probe` sees every op, as Profile does. Throws ShapeError when the loss is more than a scalar, Error when it depends
/// on no parameter or when parameters are on a tape: gradients of gradients are for grad() (derivatives.h).
auto value_and_grad(auto f, Probe* probe = nullptr) {
  return detail::value_and_grad_as("value_and_grad", std::move(f), probe);
}

/// The cotangents of the Tensors and Vars among `args`, in order and of their shapes, given `dy`, that of `f(args...)`.
/// Other arguments (settings, modules) are passed on as they are. Throws Error when one of them is on a tape.
template <class F, class... Args>
auto vjp(F&& f, const Tensor& dy, const Args&... args) {
  Tape tape;
  std::vector<Var> watched;
  auto lift = [&]<class T>(const T& arg) {
    if constexpr (detail::kDifferentiated<T>)
      return detail::check_constant("vjp", "", arg), watched.emplace_back(tape.watch(Var(arg).value()));
    else
      return arg;
  };
  const auto lifted = std::tuple{lift(args)...};  // braces: evaluated left to right
  tape.backward(std::apply(f, lifted), dy);
  std::array<Tensor, (std::size_t{detail::kDifferentiated<Args>} + ...)> grads;
  for (std::size_t i = 0; i < grads.size(); ++i) grads[i] = tape.gradient(watched[i]);
  return grads;
}

}  // namespace braid

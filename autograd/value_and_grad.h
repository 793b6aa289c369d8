#pragma once
#include <array>
#include <concepts>
#include <tuple>
#include <utility>

#include <braid/autograd/params.h>

namespace braid {

/// Returns a function that computes `f(params, args...)`, a scalar, and its gradient, shaped like `params`
/// (a Var, a module, or a vector of these):
///
///     auto step = value_and_grad([](const Model& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); });
///     auto [loss, grads] = step(model, x, y);
///
/// Throws ShapeError when f returns more than a scalar.
template <class F>
auto value_and_grad(F f) {
  return [f = std::move(f)]<Parametric P>(const P& params, const auto&... args) {
    Tape tape;
    P traced = params;  // copies the structure, shares the storage
    for_each_param(traced, [&](const std::string&, Var& p) { p = tape.watch(p.value()); });
    const Var loss = f(std::as_const(traced), args...);
    check_shape(loss.value().numel() == 1, "value_and_grad: f must return a scalar but returned shape {}",
                loss.shape());
    tape.backward(loss);
    for_each_param(traced, [&](const std::string&, Var& p) { p = tape.gradient(p); });
    return std::pair<double, P>(loss.item(), std::move(traced));
  };
}

/// The cotangents of the Tensors among `args`, in order, given the cotangent `dy` of `f(args...)`.
/// Other arguments (settings, modules) are passed on as they are.
template <class F, class... Args>
auto vjp(F&& f, const Tensor& dy, const Args&... args) {
  Tape tape;
  std::vector<Var> watched;
  auto lift = [&]<class T>(const T& arg) {
    if constexpr (std::same_as<T, Tensor>)
      return watched.emplace_back(tape.watch(arg));
    else
      return arg;
  };
  const auto lifted = std::tuple{lift(args)...};  // braces: evaluated left to right
  tape.backward(std::apply(f, lifted), dy);
  std::array<Tensor, (std::size_t{std::same_as<Args, Tensor>} + ...)> grads;
  for (std::size_t i = 0; i < grads.size(); ++i) grads[i] = tape.gradient(watched[i]);
  return grads;
}

}  // namespace braid

#pragma once
#include <tuple>
#include <utility>

#include <braid/autograd/params.h>

namespace braid {

namespace detail {

/// Calls `visit(Var&)` for every variable in an argument; settings have none.
template <class T, class Visit>
void for_each_var(T& arg, Visit&& visit) {
  if constexpr (Parametric<T>) for_each_param(arg, [&](const std::string&, Var& v) { visit(v); });
}

}  // namespace detail

/// `f(args...)`, keeping only the arguments for the backward pass, which evaluates `f` again: memory for time,
/// the gradients are the same bits. Give what f differentiates as arguments (variables, modules, vectors of these),
/// not as captures; other arguments are settings. An Rng is a value, so dropout repeats itself.
///
///     x = checkpoint([](const Block& block, const Var& x) { return block(x); }, block, x);
template <class F, class... Args>
Var checkpoint(F f, const Args&... args) {
  std::tuple<Args...> constants(args...);
  std::vector<Var> inputs;
  std::apply(
      [&](auto&... arg) {
        (detail::for_each_var(arg,
                              [&](Var& v) {
                                inputs.push_back(v);
                                v = detach(v);
                              }),
         ...);
      },
      constants);
  Tensor y = std::apply(f, std::as_const(constants)).value();
  return record("checkpoint", std::move(y), inputs, [f, constants](const Tensor& dy) {
    Tape tape;
    auto watched = constants;
    std::vector<Var> leaves;
    std::apply(
        [&](auto&... arg) {
          (detail::for_each_var(
               arg, [&](Var& v) { leaves.push_back(v = v.dtype() == DType::i32 ? v : tape.watch(v.value())); }),
           ...);
        },
        watched);
    tape.backward(std::apply(f, std::as_const(watched)), dy);
    std::vector<Tensor> grads;
    for (const Var& leaf : leaves) grads.push_back(leaf.requires_grad() ? tape.gradient(leaf) : Tensor());
    return grads;
  });
}

}  // namespace braid

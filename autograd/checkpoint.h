#pragma once
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <braid/autograd/composed.h>
#include <braid/autograd/params.h>
#include <braid/core/files/checksum.h>

namespace braid {

/// `f(args...)`, of any shape, keeping only the arguments for the backward pass, which evaluates `f` again: less memory
/// for more time, with the same gradients: bit for bit, unless f and what is around it both use a variable more than
/// once, whose gradients are then added in another order. Pass everything to differentiate as arguments (variables,
/// modules, vectors of these), not as captures; other arguments are settings. An Rng is one: f takes it by value, so
/// that dropout drops the same elements again; `rng.split()` is another one in each call. Capture by value, never
/// `this`: f runs again when the module of the call may be gone. In a HigherOrder scope it is `f(args...)` and keeps
/// everything. Throws Error when the result depends on a captured variable, or is another one when f runs again.
///
///     x = checkpoint([](const Block& block, const Var& x) { return block(x); }, block, x);
template <class F, class... Args>
Var checkpoint(F f, const Args&... args) {
  std::tuple<Args...> constants(args...);
  std::vector<Var> inputs;
  detail::for_each_var(constants, [&](Var& v) {
    inputs.push_back(v);
    v = detach(v);
  });
  if (detail::opens_checkpoints(inputs) || Composed::state().higher_order) return f(args...);
  const Var y = std::apply(f, std::as_const(constants));
  check<Error>(!y.requires_grad(),
               "checkpoint: the function captures a variable that is on a tape, whose gradient would get lost; pass it "
               "as an argument");
  const std::string before = detail::fingerprint(y.value());
  auto vjp = [f, constants, before, forms = Composed::state()](const Tensor& dy, const Needs& needs) {
    const Composed as_before(forms);
    Tape tape;
    auto again = constants;
    std::vector<Var> xs;
    detail::for_each_var(again, [&](Var& v) {
      if (needs[xs.size()]) v = tape.watch(v.value());
      xs.push_back(v);
    });
    const Var recomputed = std::apply(f, std::as_const(again));
    check<Error>(
        detail::fingerprint(recomputed.value()) == before,
        "checkpoint: the function gave another result when it ran again for its gradient; does it change what it "
        "captures? Pass an Rng as an argument by value");
    tape.backward(recomputed, dy);
    std::vector<Tensor> grads;
    for (const Var& x : xs) grads.push_back(x.requires_grad() ? tape.gradient(x) : Tensor());
    return grads;
  };
  return record("checkpoint", y.value(), inputs, std::move(vjp));
}

}  // namespace braid

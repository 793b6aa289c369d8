#pragma once
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>

namespace braid::nn {

namespace detail {
/// `used` says of each parameter whether a function depends on it; empty without a function.
std::string summary(const std::vector<NamedParam>& params, const std::vector<bool>& used = {});
}  // namespace detail

/// A table of the module's parameters, their shapes and sizes, and the total.
template <class M>
std::string summary(const M& module) {
  M copy = module;
  return detail::summary(named_params(copy));
}

/// The same, with a mark at parameters on which `f(module, args...)`, of any shape, does not depend: no optimizer ever
/// changes these.
template <class M, class F>
std::string summary(const M& module, const F& f, const auto&... args) {
  M traced = module;
  const std::vector<NamedParam> params = named_params(traced);
  Tape tape;
  for (const NamedParam& p : params) *p.param = tape.watch(p.param->value());
  const Var y = f(std::as_const(traced), args...);
  tape.backward(y, zeros(y.shape(), y.dtype()));
  std::vector<bool> used;
  for (const NamedParam& p : params) used.push_back(tape.reaches(*p.param));
  return detail::summary(params, used);
}

}  // namespace braid::nn

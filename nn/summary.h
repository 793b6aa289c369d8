#pragma once
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/nn/experts.h>

namespace braid::nn {

namespace detail {
/// `used` says of each parameter whether a function depends on it; empty without a function. `idle`: num_idle_params().
std::string summary(const std::vector<NamedParam>& params, std::int64_t idle, const std::vector<bool>& used = {});
}  // namespace detail

/// A table of the module's parameters, their shapes and sizes, the total and, with Experts, how many a token passes.
std::string summary(const auto& module) {
  auto copy = module;
  return detail::summary(named_params(copy), num_idle_params(module));
}

/// The same, with a mark at parameters on which `f(module, args...)`, of any shape, does not depend: no optimizer ever
/// changes these.
std::string summary(const auto& module, const auto& f, const auto&... args) {
  auto traced = module;
  const std::vector<NamedParam> params = named_params(traced);
  Tape tape;
  for (const NamedParam& p : params) *p.param = tape.watch(p.param->value());
  const Var y = f(std::as_const(traced), args...);
  tape.backward(y, zeros(y.shape(), y.dtype()));
  std::vector<bool> used;
  for (const NamedParam& p : params) used.push_back(tape.reaches(*p.param));
  return detail::summary(params, num_idle_params(module), used);
}

}  // namespace braid::nn

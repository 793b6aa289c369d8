#pragma once
#include <string>
#include <vector>

#include <braid/autograd/params.h>

namespace braid::nn {

namespace detail {
std::string summary(const std::vector<NamedParam>& params);
}  // namespace detail

/// A table of the module's parameters, their shapes and sizes, and the total.
template <Parametric M>
std::string summary(const M& module) {
  M copy = module;
  return detail::summary(named_params(copy));
}

}  // namespace braid::nn

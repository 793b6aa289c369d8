#pragma once
#include <string>
#include <vector>

#include <braid/autograd/params.h>

namespace braid::nn {

/// A line of a summary.
struct ParameterRow {
  std::string name;  ///< the parameter's path
  Shape shape;
};

/// The table that summary() gives.
std::string format_summary(const std::vector<ParameterRow>& rows);

/// A table of the module's parameters, their shapes and sizes, and the total.
template <Parametric M>
std::string summary(const M& module) {
  std::vector<ParameterRow> rows;
  for_each_param(module, [&](const std::string& name, const Var& p) { rows.push_back({name, p.shape()}); });
  return format_summary(rows);
}

}  // namespace braid::nn

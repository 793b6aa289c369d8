#pragma once
#include <tests/random_programs/check.h>
#include <tests/random_programs/module_plan.h>

namespace braid::programs {

struct CheckedModule {
  std::optional<Failure> failure;
  GradcheckResult gradients = {};
};

/// Checks a module as programs are checked; with `bits` only these, which sets the number of threads of the process.
CheckedModule check_module(const ModulePlan& plan, bool bits = false);

}  // namespace braid::programs

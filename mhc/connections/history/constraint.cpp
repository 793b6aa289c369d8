#include <braid/mhc/connections/history/constraint.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/mhc/ops/projections.h>

namespace braid::mhc {
namespace {

void check_temperature(std::string_view constraint, double temperature) {
  check_value(temperature > 0, "{} constraint: temperature must be > 0 but is {}", constraint, temperature);
}

/// The nearest of the weights `(1 - epsilon) p + epsilon e_last` with p in the simplex.
Tensor project_identity(const Tensor& weights, double epsilon) {
  const Var reserved = epsilon * Var(eye(weights.size(-1), weights.dtype())[-1]);
  return ((1 - epsilon) * simplex_projection((Var(weights) - reserved) / (1 - epsilon)) + reserved).value();
}

}  // namespace

Constraint simplex_constraint(double temperature) {
  check_temperature("simplex", temperature);
  return {"simplex", false, [=](const Var& z) { return simplex_softmax(z, temperature); },
          [](const Tensor& w) { return simplex_projection(w).value(); }};
}

Constraint identity_constraint(double epsilon, double temperature) {
  check_temperature("identity", temperature);
  check_value(epsilon >= 0 && epsilon < 1, "identity constraint: epsilon must be in [0, 1) but is {}", epsilon);
  return {"identity", false, [=](const Var& z) { return identity_preserving(z, epsilon, temperature); },
          [=](const Tensor& w) { return project_identity(w, epsilon); }};
}

Constraint doubly_stochastic_constraint(double temperature) {
  check_temperature("doubly_stochastic", temperature);
  return {"doubly_stochastic", true, [=](const Var& z) { return doubly_stochastic(z, temperature, 20); },
          birkhoff_projection};
}

Constraint make_constraint(std::string_view name, const ConstraintSettings& settings) {
  if (name == "simplex") return simplex_constraint(settings.temperature);
  if (name == "identity") return identity_constraint(settings.epsilon, settings.temperature);
  check_value(name == "doubly_stochastic",
              "make_constraint: constraint must be one of simplex, identity, doubly_stochastic but is '{}'", name);
  return doubly_stochastic_constraint(settings.temperature);
}

}  // namespace braid::mhc

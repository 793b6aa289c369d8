#pragma once
#include <functional>
#include <string>
#include <string_view>

#include <braid/autograd/tape.h>

namespace braid::mhc {

/// A set of mixing weights for k states, oldest first, with two maps onto it. A value: pass your own to MHCSkip.
struct Constraint {
  std::string name;     ///< the name that make_constraint() takes
  bool matrix = false;  ///< logits are [k, k] and the last row mixes; otherwise [k]

  /// Differentiable: logits [k] or [k, k] -> weights of the same shape.
  std::function<Var(const Var& logits)> weights;
  /// The nearest point of the set, for parameters that are weights themselves.
  std::function<Tensor(const Tensor& weights)> project;
};

/// Weights >= 0 with sum 1: `softmax(z / temperature)`. Throws ValueError unless temperature > 0.
Constraint simplex_constraint(double temperature = 1);

/// Simplex weights with at least epsilon on the current state: `(1 - epsilon) softmax(z / temperature) + epsilon
/// e_last`. Throws ValueError unless epsilon is in [0, 1) and temperature > 0.
Constraint identity_constraint(double epsilon = 0.1, double temperature = 1);

/// The k states are mixed by a doubly stochastic matrix, Sinkhorn-Knopp of z / temperature with exact rows.
/// Throws ValueError unless temperature > 0.
Constraint doubly_stochastic_constraint(double temperature = 1);

/// Settings of all constraints; each uses those it has.
struct ConstraintSettings {
  double epsilon = 0.1;    ///< identity: the least weight of the current state
  double temperature = 1;  ///< divides the logits
};

/// A constraint by name: simplex, identity or doubly_stochastic. Throws ValueError listing these for any other name.
Constraint make_constraint(std::string_view name, const ConstraintSettings& settings = {});

}  // namespace braid::mhc

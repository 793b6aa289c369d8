#pragma once
#include <concepts>

#include <braid/autograd/tape.h>

namespace braid::mhc {

// Maps onto sets of mixing weights. The last axis holds the weights; leading axes are batches.

/// `softmax(logits / temperature)`, onto the probability simplex: logits [..., n] -> [..., n]. Throws ValueError unless
/// temperature > 0.
Var simplex_softmax(const Var& logits, double temperature = 1);

/// `(1 - epsilon) softmax(logits / temperature)` with epsilon more on the last entry, the current state: weights sum
/// to 1 and the last is at least epsilon. logits [..., n] -> [..., n]. Throws ValueError unless epsilon is in [0, 1)
/// and temperature > 0.
Var identity_preserving(const Var& logits, double epsilon, double temperature = 1);

/// Sinkhorn-Knopp of logits / temperature, rows exact: logits [..., n, n] -> [..., n, n]. Throws as sinkhorn_knopp()
/// does, and ValueError unless temperature > 0.
Var doubly_stochastic(const Var& logits, double temperature = 1, int iterations = 20);
template <std::floating_point T>
Var doubly_stochastic(const Var& logits, double temperature, T iterations) = delete;

/// The nearest point of the probability simplex (Euclidean): `max(v - theta, 0)` with theta such that the sum is 1.
/// v [..., n] -> [..., n]. Weights that contain NaN or Inf become NaN. Throws ShapeError when the last axis is empty,
/// DTypeError unless f32 or f64. Held, Wolfe, Crowder 1974.
Var simplex_projection(const Var& v);

/// The doubly stochastic matrix [n, n] nearest to v [n, n] (Euclidean), by Dykstra's alternating projections onto the
/// matrices with rows, and with columns, in the simplex, until a sweep moves no entry by 1e-10. Not differentiable: for
/// parameters. NaN becomes NaN. Throws ShapeError unless v is square. Boyle, Dykstra 1986.
Tensor birkhoff_projection(const Tensor& v);

}  // namespace braid::mhc

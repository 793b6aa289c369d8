#pragma once
#include <braid/autograd/tape.h>
#include <braid/mhc/mixings/mixing_settings.h>

namespace braid::mhc {

/// Sinkhorn-Knopp: exp(logits), then `iterations` times a normalization of rows and of columns to sum 1.
/// logits [..., n, n] -> [..., n, n]: doubly stochastic at convergence, entries in [0, 1].
///
/// Works for logits of any finite size, forward and backward (the first two half-steps run in log space). The vjp is
/// that of the truncated iteration, saves the logits only and recomputes the iterates. A matrix with a NaN or infinite
/// logit becomes NaN. Throws ShapeError unless the last two axes are equal and not empty, ValueError unless
/// iterations >= 1, DTypeError unless f32 or f64. Sinkhorn and Knopp 1967; arXiv:2512.24880.
///
/// The composed form consists of logsumexp steps, entirely in log space. It saves every step and accepts -inf as a
/// weight of 0.
Var sinkhorn_knopp(const Var& logits, int iterations = 20, Marginal exact = Marginal::columns);

}  // namespace braid::mhc

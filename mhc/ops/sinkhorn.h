#pragma once
#include <braid/autograd/tape.h>
#include <braid/mhc/mixing_settings.h>
#include <braid/mhc/path.h>

namespace braid::mhc {

/// Sinkhorn-Knopp: exp(logits), then `iterations` times a normalization of rows and of columns to sum 1.
/// logits [..., n, n] -> [..., n, n]: doubly stochastic at convergence, entries in [0, 1].
///
/// Works for logits of any finite size, forward and backward (the first two half-steps run in log space). The vjp is
/// that of the truncated iteration, saves the logits only and recomputes the iterates. A matrix with a NaN or infinite
/// logit becomes NaN. Throws ShapeError unless the last two axes are equal and not empty, ValueError unless
/// iterations >= 1, DTypeError for i32. Sinkhorn and Knopp 1967; arXiv:2512.24880.
///
/// The reference path is composed of logsumexp steps, entirely in log space. It saves every step, and -inf is a weight
/// of 0 to it.
Var sinkhorn_knopp(const Var& logits, int iterations = 20, Marginal exact = Marginal::columns,
                   Path path = default_path());

}  // namespace braid::mhc

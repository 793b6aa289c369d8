#pragma once
#include <braid/autograd/tape.h>

namespace braid::mhc {

// The residual streams of hyper-connections: n states of C channels beside each other, [..., n, C].

/// Opens n streams as copies of floats x [..., C] -> [..., n, C]. Throws ValueError unless n >= 1, ShapeError for a
/// scalar.
Var expand_streams(const Var& x, std::int64_t n);

/// How streams become one state again.
enum class StreamReduction {
  mean,  ///< keeps the scale for any n
  sum,   ///< arXiv:2409.19606
};

/// x [..., n, C] of floats -> [..., C]. Throws ShapeError for fewer than two axes.
Var reduce_streams(const Var& x, StreamReduction how = StreamReduction::mean);

}  // namespace braid::mhc

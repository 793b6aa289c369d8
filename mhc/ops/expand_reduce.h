#pragma once
#include <braid/autograd/tape.h>
#include <braid/mhc/path.h>

namespace braid::mhc {

// The residual streams of hyper-connections: n states of C channels beside each other, [..., n, C].
// Maps that broadcast against the leading axes of x in other ways than below are welcome, on the reference path.

/// Opens n streams as copies of x. [..., C] -> [..., n, C]. Throws ValueError unless n >= 1.
Var expand_streams(const Var& x, std::int64_t n);

/// How streams become one state again.
enum class StreamReduction {
  mean,  ///< keeps the scale for any n
  sum,   ///< arXiv:2409.19606
};

/// [..., n, C] -> [..., C].
Var reduce_streams(const Var& x, StreamReduction how = StreamReduction::mean);

/// What a layer reads: `u = sum_i h_pre_i x_i`. h_pre [n] or [..., n], x [..., n, C] -> [..., C].
/// Throws ShapeError when h_pre does not fit x.
Var read_streams(const Var& h_pre, const Var& x, Path path = Path::automatic);

/// What a layer leaves: `out_i = sum_j h_res_ij x_j + h_post_i y`.
/// h_res [n, n] or [..., n, n], h_post [n] or [..., n], x [..., n, C], y [..., C] -> [..., n, C].
/// Throws ShapeError when a shape does not fit x.
Var write_streams(const Var& h_res, const Var& h_post, const Var& x, const Var& y, Path path = Path::automatic);

/// Throws ShapeError naming `op` unless the shape of x is [..., n, C].
void check_streams(const char* op, const Shape& x, std::int64_t n, std::int64_t channels);

}  // namespace braid::mhc

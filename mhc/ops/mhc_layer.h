#pragma once
#include <braid/autograd/tape.h>

namespace braid::mhc {

/// A read, an RMS norm as the layer and a write, in one pass forward and one backward. x [..., n, C]:
///
///     u = rms_norm(sum_i h_pre_i x_i, weight, eps)      out_i = sum_j h_res_ij x_j + h_post_i u
///
/// h_pre, h_post [n], h_res [n, n], weight [C], x -> [..., n, C]. Throws ShapeError or DTypeError unless all fit x.
Var mhc_layer(const Var& h_pre, const Var& h_post, const Var& h_res, const Var& weight, const Var& x,
              double eps = 1e-5);

}  // namespace braid::mhc

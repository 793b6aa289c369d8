#pragma once
#include <memory>

#include <braid/autograd/tape.h>
#include <braid/mhc/path.h>

namespace braid::mhc {

// Reading from and writing to streams x [..., n, C], in one pass each on the fused path, forward and vjp. A map is one
// for all tokens ([n], [n, n]) or one per token ([..., n], [..., n, n]); other maps that broadcast against the leading
// axes of x are welcome on the reference path.

/// What a layer reads: `u = sum_i h_pre_i x_i`. h_pre [n] or [..., n], x [..., n, C] -> [..., C].
/// Throws ShapeError when h_pre does not fit x.
Var read_streams(const Var& h_pre, const Var& x, Path path = default_path());

/// The streams after a layer with output f: `y_i = sum_j h_res_ij x_j + h_post_i f`.
/// h_res [n, n] or [..., n, n], h_post [n] or [..., n], x [..., n, C], f [..., C] -> [..., n, C].
/// Throws ShapeError when a shape does not fit x.
Var write_streams(const Var& h_res, const Var& h_post, const Var& x, const Var& f, Path path = default_path());

/// The three maps of a hyper-connection on n streams.
struct StreamMaps {
  Var h_pre;   ///< [n] or [..., n], what the layer reads; undefined where no map of streams says it
  Var h_post;  ///< [n] or [..., n], where its output goes
  Var h_res;   ///< [n, n] or [..., n, n], how the streams mix

  /// Whether h_pre and h_post / 2 are sigmoids, which telemetry watches for saturation.
  bool gated = true;
  double post_magnitude = 2;  ///< in place of the 2
};

namespace detail {

class KeptStreams;

/// A layer's input with all that the write of its output needs later.
///
/// Where the write is deferred, its vjp leaves x and H_res to the vjp of the read, which has both at hand and adds all
/// terms of dx in one pass: on the tape, the cotangent of `x` is that of the written streams (a Deferral). Hence h_pre
/// is a constant here (but where the next layer reads by it), h_res gets no cotangent, and x goes nowhere but to the
/// write.
struct LayerRead {
  Var u;  // [..., C]
  StreamMaps maps;
  Var x;                                   // [..., n, C]
  std::shared_ptr<KeptStreams> kept = {};  // x for vjps, of reads that recompute it
};

/// `u = H_pre x` on the fused path, with the write deferred. Throws ShapeError unless the maps fit x.
LayerRead read_deferring_write(const StreamMaps& maps, const Var& x);

/// The deferred write, `H_res x + H_post^T f`, of an f that fits. f [..., C] -> [..., n, C].
Var write_deferred(const LayerRead& read, const Var& f);

/// The kernel behind all fused writes, on tensors. Maps are contiguous but for the step from token to token.
Tensor write_streams(const Tensor& h_res, const Tensor& h_post, const Tensor& x, const Tensor& f);

/// Throws ShapeError naming `op` unless x has shape [..., n, C].
void check_streams(const char* op, const Var& x);

/// Throws ShapeError or DTypeError naming `op` unless f [..., C] fits streams x [..., n, C].
void check_layer_output(const char* op, const Var& f, const Var& x);

}  // namespace detail

/// Throws ShapeError naming `op` unless the shape of x is [..., n, C].
void check_streams(const char* op, const Shape& x, std::int64_t n, std::int64_t channels);

}  // namespace braid::mhc

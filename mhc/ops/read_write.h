#pragma once
#include <memory>

#include <braid/autograd/tape.h>

namespace braid::mhc {

// Reads from and writes to streams x [..., n, C], each one pass over them, forward and backward. A map is one for all
// tokens ([n], [n, n]) or one per token ([..., n], [..., n, n]); any other map that broadcasts against the leading axes
// of x runs the composed form.

/// The input of a layer: `u = sum_i h_pre_i x_i`. h_pre [n] or [..., n], x [..., n, C] -> [..., C].
/// Throws ShapeError or DTypeError when h_pre does not fit x.
Var read_streams(const Var& h_pre, const Var& x);

/// The streams after a layer with output f: `y_i = sum_j h_res_ij x_j + h_post_i f`.
/// h_res [n, n] or [..., n, n], h_post [n] or [..., n], x [..., n, C], f [..., C] -> [..., n, C].
/// Throws ShapeError or DTypeError when one does not fit x.
Var write_streams(const Var& h_res, const Var& h_post, const Var& x, const Var& f);

/// Streams mixed by a matrix: `y_i = sum_j map_ij x_j`. map [m, n] or [..., m, n], x [..., n, C] -> [..., m, C].
/// Throws ShapeError or DTypeError when map does not fit x.
Var mix_streams(const Var& map, const Var& x);

/// The three maps of a hyper-connection on n streams.
struct StreamMaps {
  Var h_pre;   ///< [n] or [..., n], weights of the streams in the layer's input; undefined if gates of channels replace
               ///< it
  Var h_post;  ///< [n] or [..., n], weights of the layer's output in the streams; undefined for maps that only read
  Var h_res;   ///< [n, n] or [..., n, n], mixes the streams

  /// Whether h_pre and h_post / post_magnitude are sigmoids, which telemetry checks for saturation.
  bool gated = true;
  double post_magnitude = 2;  ///< the largest h_post
};

namespace detail {
class KeptStreams;
}

/// A layer's input, and what the write of its output needs.
///
/// Where the write is deferred, its vjp leaves x and H_res to the vjp of the read, which has both in cache and adds all
/// terms of dx in one pass: on the tape, the cotangent of `x` is that of the written streams (a Deferral). Hence h_pre
/// is a constant here (unless the next layer reads by it), h_res gets no cotangent, and only the write may use x.
struct LayerRead {
  Var u;                                           ///< [..., C]
  StreamMaps maps;                                 ///< undefined before the first read
  Var x;                                           ///< [..., n, C]
  bool deferred = true;                            ///< whether the write is; otherwise write_streams() does it
  std::shared_ptr<detail::KeptStreams> kept = {};  ///< x for vjps, of reads that recompute it
};

/// The streams between two sublayers and, between a layer and the next read, the pending write of its output.
struct StreamState {
  LayerRead last;               ///< x [..., n, C] and, from a read until its write is done, the maps
  Var f = {};                   ///< [..., C], the layer's output while its write is pending
  std::int64_t keep_every = 1;  ///< see Streams

  bool reading() const { return last.maps.h_res.value().defined(); }  ///< whether a read waits for its write
  bool pending() const { return f.value().defined(); }                ///< whether a write is pending

  /// The streams [..., n, C] after the pending write. Throws Error between a read and its write.
  Var value() const;
  /// Performs the pending write and returns the streams [..., n, C]. Throws as value() does.
  const Var& settle() &;
};

/// A read by given maps: `u = H_pre x`. Throws ShapeError or DTypeError unless the maps fit x.
///
/// Streams::read() takes every type of maps that has such a function: it performs or absorbs the pending write, reads,
/// and returns the layer's input and what the next write needs.
LayerRead read_maps(const StreamMaps& maps, StreamState& streams);

/// Throws ShapeError naming `op` unless the shape of x is [..., n, C].
void check_streams(const char* op, const Shape& x, std::int64_t n, std::int64_t channels);

namespace detail {

/// Throws ShapeError or DTypeError naming `op` unless x has shape [..., n, C] and is of floats.
void check_streams(const char* op, const Var& x);

/// Throws ShapeError or DTypeError naming `op` unless f [..., C] fits streams x [..., n, C].
void check_layer_output(const char* op, const Var& f, const Var& x);

/// The kernel of all fused writes, on tensors. Maps are contiguous but for the step from token to token.
Tensor write_streams(const Tensor& h_res, const Tensor& h_post, const Tensor& x, const Tensor& f);

}  // namespace detail
}  // namespace braid::mhc

#pragma once
#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/gated_read.h>
#include <braid/mhc/ops/hyper_read.h>
#include <braid/mhc/ops/mhc_read.h>
#include <braid/mhc/ops/read_write.h>
#include <braid/mhc/streams/connection_hook.h>

namespace braid::mhc {

/// The residual streams between two sublayers: n states of C channels, [..., n, C], and perhaps a pending write. A
/// connection's maps read the input of a layer and write its output:
///
///     Streams x(expand_streams(embedding, n));
///     x.write(layer(x.read(maps)));
///     Var y = reduce_streams(x.value());
///
/// A write is deferred to the next read, so that the two and the maps between them can be one pass over the streams
/// (arXiv:2512.24880, 4.3). A value: copies share their tensors and are independent. checkpoint() takes value(), a Var.
class Streams {
 public:
  /// x [..., n, C]. Fused manifold-constrained connections save every keep_every-th of their streams for the backward
  /// pass and recompute the others with the same bits; keep_interval() plans it, 1 keeps all.
  /// Throws ShapeError unless x has at least two axes, DTypeError for i32, ValueError unless keep_every >= 1.
  explicit Streams(Var x, std::int64_t keep_every = 1);

  /// [..., n, C]
  const Shape& shape() const& { return state_.last.x.shape(); }
  Shape shape() && { return state_.last.x.shape(); }  ///< of a temporary: a copy
  /// The streams [..., n, C] after the pending write. Throws Error between read() and write().
  Var value() const { return state_.value(); }
  /// Performs the pending write and returns the streams [..., n, C]. Throws as value() does.
  const Var& settle() & { return state_.settle(); }

  /// Adds one vector to each stream of every token, [n, C], f32 for streams of bf16. Throws ShapeError or DTypeError
  /// unless it fits, Error between read() and write().
  void add(const Var& each);

  /// The input [..., C] of the next layer, read by maps that are given (StreamMaps) or computed from the streams on the
  /// way: by any type of maps that has a free function read_maps(), see ops/read_write.h. The streams then wait for the
  /// layer's output. Throws Error when they do already, ShapeError or DTypeError unless the maps fit.
  Var read(const auto& maps) {
    ConnectionHook* hook = ConnectionHook::active();
    if (hook == nullptr) return hold(read_maps(maps, state_));
    return hold(hook->read(state_, [&](StreamState& x) { return read_maps(maps, x); }));
  }
  /// The maps of the last read, until its write is done.
  const StreamMaps& maps() const& { return state_.last.maps; }
  StreamMaps maps() && { return std::move(state_.last.maps); }  ///< of a temporary

  /// Defers the write of the layer's output f [..., C]: the streams become H_res x + H_post^T f.
  /// Throws Error without a read() before it, ShapeError or DTypeError unless f fits.
  void write(Var f);

 private:
  Var hold(LayerRead read);

  StreamState state_;
};

/// The interval k at which keeping every k-th sublayer's streams takes the least memory for kept and recomputed streams
/// together: sqrt(n L / (n + 2)), rounded, at least 1 (arXiv:2512.24880, eq. 20).
/// Throws ValueError unless streams >= 1 and sublayers >= 0.
std::int64_t keep_interval(std::int64_t streams, std::int64_t sublayers);

}  // namespace braid::mhc

#pragma once
#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/gated_read.h>
#include <braid/mhc/ops/hyper_read.h>
#include <braid/mhc/ops/mhc_read.h>
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The residual streams between two sublayers: n states of C channels, [..., n, C], and perhaps a write that is still
/// owed. A layer reads its input by the maps of a connection, and its output is written by them:
///
///     Streams x(expand_streams(embedding, n));
///     x.write(layer(x.read(maps)));
///     Var y = reduce_streams(x.value());
///
/// A write waits for the next read, so that the two and the maps between them can be one pass over the streams
/// (arXiv:2512.24880, 4.3). A value: copies share their tensors, and go their own ways. checkpoint() takes value(), a
/// Var.
class Streams {
 public:
  /// x [..., n, C]. On the fused path, manifold-constrained connections save every keep_every-th of their streams for
  /// the backward pass and write the rest again, bit for bit; keep_interval() plans it, 1 keeps all.
  /// Throws ShapeError unless x has two axes, ValueError unless keep_every >= 1.
  explicit Streams(Var x, std::int64_t keep_every = 1);

  /// [..., n, C]
  const Shape& shape() const { return last_.x.shape(); }
  /// The streams with the write done that is owed. Throws Error between read() and write().
  Var value() const;
  /// The same, once and for all: nothing is owed then.
  const Var& settle();

  /// Adds one vector to each stream of every token, [n, C]. Throws Error between read() and write().
  void add(const Var& each);

  /// The input [..., C] of the next layer, read by maps that are given, or computed from the streams on the way.
  /// The streams then wait for the layer's output. Throws Error when they do already, ShapeError unless the maps fit.
  Var read(const StreamMaps& maps, Path path = default_path());
  Var read(const GatedMaps& maps);
  Var read(const HyperMaps& maps);
  Var read(const MHCMaps& maps, Path path = default_path());

  /// What a single pass reads: the layer's input, and the weights for the next one.
  struct SinglePass {
    Var u;      ///< [..., C], the layer's input
    Var h_pre;  ///< [..., n], for the read after the next write
  };
  /// The input of the next layer, read by `pre` ([n] or [..., n]), which the read before has left; the maps are for the
  /// write and for the next read (single pass, arXiv:2609.19969).
  SinglePass read(const MHCMaps& maps, const Var& pre, Path path = default_path());

  /// Owes the write of the layer's output f [..., C]: the streams become H_res x + H_post^T f.
  /// Throws Error without a read() before it, ShapeError or DTypeError unless f fits.
  void write(const Var& f);

 private:
  bool reading() const { return last_.maps.h_res.value().defined(); }
  bool owed() const { return f_.value().defined(); }
  detail::LayerRead read_by(const MHCMaps& maps, const Var& pre, Path path);
  Var hold(detail::LayerRead read, Path path, bool observed = true);

  detail::LayerRead last_;  // x and, from a read until its write is done, the maps
  Var f_;                   // the layer's output while its write is owed
  Path path_ = Path::fused;
  std::int64_t keep_every_;
};

/// At every how many sublayers to keep the streams so that the kept and the recomputed ones of `sublayers` take the
/// least memory: sqrt(n L / (n + 2)), rounded, at least 1 (arXiv:2512.24880, eq. 20).
/// Throws ValueError unless streams >= 1 and sublayers >= 0.
std::int64_t keep_interval(std::int64_t streams, std::int64_t sublayers);

}  // namespace braid::mhc

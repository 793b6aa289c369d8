#pragma once
#include <braid/autograd/tape.h>
#include <braid/mhc/ops/kept_streams.h>

namespace braid::mhc {

/// The parameters and settings of one manifold-constrained hyper-connection, as the fused path reads them.
struct FusedMhc {
  const Var& phi;    // [nC, n (n + 2)], columns pre | post | res
  const Var& alpha;  // [3]
  const Var& bias;   // [n (n + 2)]
  int iterations;
  bool rows_last;
  double eps;
};

/// Streams on their way through fused connections: x and its maps, with the write of the last layer's output still to
/// be done, so that it happens in one pass with the maps and the read of the next connection (arXiv:2512.24880, 4.3).
/// Values and gradients are those of ManifoldConstrainedHC's composed path; nothing but z, r and the maps is saved
/// beside the streams, and of these every `keep_every`-th: the rest is written again in the backward pass, from the
/// layers' outputs, bit for bit.
class FusedStream {
 public:
  /// x [..., n, C], nothing to be written. keep_interval() plans `keep_every`; 1 keeps all.
  /// Throws ValueError unless keep_every >= 1.
  explicit FusedStream(Var x, std::int64_t keep_every = 1);

  /// [..., n, C]
  const Shape& shape() const { return x_.shape(); }

  /// Finishes the pending write and reads the layer's input u [..., C] by the next connection's maps. The stream then
  /// waits for the layer's output.
  Var read(const FusedMhc& connection);
  /// The layer's output f [..., C]; the write of H_res x + H_post^T f is now pending.
  void write(const Var& f);
  /// The streams [..., n, C] with the pending write done.
  Var streams() const;

 private:
  // On the tape, the cotangent of x_ after a read() is that of the write that follows: the vjp of the read adds
  // H_res^T itself and finds the cotangent of H_res, in one pass with its other terms. Hence x_ must not leave this
  // class once maps_ is there, and of the maps only post_ is on the tape.
  Var x_, post_, f_;
  Tensor maps_;  // [..., n (n + 2)]: pre, post, res
  std::int64_t keep_every_;
  std::shared_ptr<KeptStream> kept_;  // the newest, x_
};

}  // namespace braid::mhc

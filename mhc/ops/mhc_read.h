#pragma once
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters and settings behind the maps of one manifold-constrained hyper-connection.
struct MHCMaps {
  const Var& phi;    // [nC, n (n + 2)], columns pre | post | res
  const Var& alpha;  // [3]
  const Var& bias;   // [n (n + 2)]
  int iterations;
  bool rows_last;
  double eps;
};

namespace detail {

/// The maps of x [..., n, C] and the read by them in one pass, with the write deferred (arXiv:2512.24880, 4.3).
/// Values and gradients are those of ManifoldConstrainedHC's composed maps; only z, r and the maps are saved beside
/// the streams. Throws ShapeError unless the parameters fit x.
LayerRead mhc_read(const MHCMaps& maps, const Var& x);

/// The same on the streams that the deferred write of f after `before` gives: the write, the maps and the read are one
/// pass. Of a chain of these, every keep_every-th saves its streams for the backward pass; the rest writes them again
/// from the layers' outputs, bit for bit.
LayerRead mhc_read(const MHCMaps& maps, const LayerRead& before, const Var& f, std::int64_t keep_every);

}  // namespace detail
}  // namespace braid::mhc

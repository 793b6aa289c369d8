#pragma once
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters of a hyper-connection's dynamic maps, as the fused path reads them.
struct FusedHyperConnection {
  const Var& theta;  // [2 + n, C], rows pre | post | res
  const Var& alpha;  // [3]
  const Var& bias;   // [n (n + 2)], pre | post | res
  double eps;
};

/// The maps of HyperConnection and the read by them in one pass over x [..., n, C], with the write to follow:
/// its vjp passes over x once as well. Throws ShapeError unless the parameters fit x.
LayerInput open_layer(const FusedHyperConnection& connection, const Var& x);

}  // namespace braid::mhc

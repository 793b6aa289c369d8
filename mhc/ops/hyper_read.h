#pragma once
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters behind the dynamic maps of a hyper-connection.
struct HyperMaps {
  const Var& theta;  ///< [2 + n, C], rows pre | post | res
  const Var& alpha;  ///< [3]
  const Var& bias;   ///< [n (n + 2)], pre | post | res
  double eps;        ///< of the norm
};

namespace detail {

/// The maps of HyperConnection and the read by them in one pass over x [..., n, C], with the write deferred: its vjp
/// passes over x once as well. Throws ShapeError unless the parameters fit x.
LayerRead hyper_read(const HyperMaps& maps, const Var& x);

}  // namespace detail
}  // namespace braid::mhc

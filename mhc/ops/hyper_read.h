#pragma once
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {

/// The parameters of the dynamic maps of a HyperConnection, which has their formula.
struct HyperMaps {
  Var theta;   ///< [2 + n, C], rows pre | post | res
  Var alpha;   ///< [3]
  Var bias;    ///< [n (n + 2)], pre | post | res
  double eps;  ///< of the norm
};

/// The maps of x [..., n, C], composed of other ops. Throws ShapeError or DTypeError unless the parameters fit x.
StreamMaps compose_maps(const HyperMaps& maps, const Var& x);

/// The maps and the read by them in one pass over the streams, with the write deferred; the vjp is one pass as well.
/// Throws ShapeError or DTypeError unless the parameters fit the streams.
LayerRead read_maps(const HyperMaps& maps, StreamState& streams);

}  // namespace braid::mhc

#include <braid/mhc/connections/released/single_pass.h>

#include <utility>

namespace braid::mhc {

Var SinglePassConnection::read(SinglePassStreams& x) const {
  check_streams("SinglePassConnection", x.x.shape(), streams(), parameters.channels);
  Var u = x.x.read(SinglePassMaps{.maps = parameters.maps.maps(), .h_pre = x.h_pre});
  x.h_pre = x.x.maps().h_pre;
  return u;
}

SinglePassStreams SinglePassConnection::first(Streams x) const {
  const Tensor stream_0 = eye(streams(), compute_dtype(x.value().dtype())).select(0, 0).clone();
  return {std::move(x), stream_0};
}

}  // namespace braid::mhc

#include <braid/mhc/released/single_pass.h>

#include <utility>

namespace braid::mhc {

Var SinglePassConnection::read(SinglePassStreams& x) const {
  const DeepSeekV4Connection& p = parameters;
  check_streams("SinglePassConnection", x.x.shape(), streams(), p.channels);
  auto [u, h_pre] = x.x.read(p.maps.maps(), x.h_pre, p.settings.path);
  x.h_pre = std::move(h_pre);
  return std::move(u);
}

SinglePassStreams SinglePassConnection::first(Streams x) const {
  const Tensor stream_0 = eye(streams(), compute_dtype(x.value().dtype())).select(0, 0).clone();
  return {std::move(x), stream_0};
}

}  // namespace braid::mhc

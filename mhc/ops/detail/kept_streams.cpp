#include <braid/mhc/ops/detail/kept_streams.h>

#include <braid/mhc/ops/read_write.h>

namespace braid::mhc::detail {

const Tensor& KeptStreams::x() {
  if (!x_.defined()) x_ = write_streams(h_res_, h_post_, before_->x(), f_);
  return x_;
}

}  // namespace braid::mhc::detail

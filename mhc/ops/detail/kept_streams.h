#pragma once
#include <memory>

#include <braid/mhc/ops/read_write.h>

namespace braid::mhc::detail {

/// The streams [..., n, C] at one connection, for its backward pass: kept, or recomputed from those of the connection
/// before, by its maps and its layer's output, without running the layer (arXiv:2512.24880, 4.3.2).
class KeptStreams {
 public:
  explicit KeptStreams(Tensor x) : x_(std::move(x)) {}

  /// The result of write_streams() on the streams `before` with h_res, h_post and the layer's output f.
  KeptStreams(std::shared_ptr<KeptStreams> before, Tensor h_res, Tensor h_post, Tensor f)
      : before_(std::move(before)), h_res_(std::move(h_res)), h_post_(std::move(h_post)), f_(std::move(f)) {}

  /// The number of connections since the last kept streams.
  std::int64_t distance() const { return before_ ? before_->distance() + 1 : 0; }

  /// The streams, the same bits as in the forward pass. They stay in memory as long as this object, as do the streams
  /// that were recomputed on the way.
  const Tensor& x() {
    if (!x_.defined()) x_ = write_streams(h_res_, h_post_, before_->x(), f_);
    return x_;
  }

 private:
  std::shared_ptr<KeptStreams> before_;  // null: x_ is kept
  Tensor h_res_, h_post_, f_, x_;
};

}  // namespace braid::mhc::detail

#pragma once
#include <memory>

#include <braid/core/tensor.h>

namespace braid::mhc {

/// The streams [..., n, C] at one connection, for its backward pass: kept, or written again from those of the
/// connection before, which needs the maps and the layer's output there but not the layer (arXiv:2512.24880, 4.3.2).
class KeptStream {
 public:
  explicit KeptStream(Tensor x) : x_(std::move(x)) {}

  /// What fused_write() makes of x at `before` by maps [..., n (n + 2)] and the layer's output f [..., C].
  KeptStream(std::shared_ptr<KeptStream> before, Tensor maps, Tensor f);

  /// How many connections ago the last kept streams were.
  std::int64_t distance() const { return before_ ? before_->distance() + 1 : 0; }

  /// The streams, the same bits as in the forward pass. They stay until this object goes, as do those on the way.
  const Tensor& x();

 private:
  std::shared_ptr<KeptStream> before_;  // null: x_ is kept
  Tensor maps_, f_, x_;
};

/// y = H_res x + H_post^T f, in one pass.
Tensor fused_write(const Tensor& x, const Tensor& maps, const Tensor& f);

/// At every how many sublayers to keep the streams so that the kept and the recomputed ones of `sublayers` take the
/// least memory: sqrt(n L / (n + 2)), rounded, at least 1 (arXiv:2512.24880, eq. 20).
/// Throws ValueError unless streams >= 1 and sublayers >= 0.
std::int64_t keep_interval(std::int64_t streams, std::int64_t sublayers);

}  // namespace braid::mhc

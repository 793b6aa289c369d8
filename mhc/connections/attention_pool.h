#pragma once
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/cast.h>
#include <braid/autograd/ops/linear.h>
#include <braid/autograd/ops/softmax.h>
#include <braid/autograd/ops/sum.h>
#include <braid/mhc/streams/streams.h>

namespace braid::mhc {

/// The attention pool of Enformer (Nature Methods 18, 2021) over streams, as a head of the package hyper-connections:
/// `y = sum_i softmax_i(logits x_i) x_i`, channel by channel. The mean of streams that are copies of each other.
struct AttentionPool {
  Var logits;  ///< [C, C], the identity at the start

  /// Throws ValueError unless channels >= 1.
  explicit AttentionPool(std::int64_t channels, DType dtype = DType::f32) {
    check_value(channels >= 1, "AttentionPool: channels must be >= 1 but is {}", channels);
    logits = eye(channels, dtype);
  }

  /// x [..., n, C] -> [..., C]. Throws ShapeError on other shapes.
  Var operator()(const Var& x) const {
    check_shape(x.rank() >= 2 && x.size(-1) == logits.size(0),
                "AttentionPool: x must have shape [..., n, {}] but has {}", logits.size(0), x.shape());
    const Var wide = cast(x, logits.dtype());
    return cast(sum(softmax(linear(wide, logits), -2) * wide, -2), x.dtype());
  }
  Var operator()(const Streams& x) const { return (*this)(x.value()); }

  void params(auto&& visit) { visit("logits", logits); }
};

}  // namespace braid::mhc

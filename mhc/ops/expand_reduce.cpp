#include <braid/mhc/ops/expand_reduce.h>

#include <algorithm>
#include <vector>

#include <braid/autograd/composed.h>
#include <braid/autograd/ops.h>
#include <braid/core/map.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc {
namespace {

/// [..., C] -> [..., n, C]: scale times x in every stream.
Tensor spread(const Tensor& x, std::int64_t n, double scale) {
  return map(
      "expand_streams", [scale](auto v) { return static_cast<decltype(v)>(scale) * v; },
      x.expand_dims(-2).broadcast_to(x.shape().inserted(x.rank() - 1, n)));
}

/// [..., n, C] -> [..., C]: scale times the sum of the streams.
Tensor collect(const Tensor& x_in, double scale) {
  const Tensor x = x_in.contiguous();
  Tensor y(x.shape().without(-2), x.dtype());
  const std::int64_t n = x.size(-2), channels = x.size(-1);
  dispatch_float_or_bf16("reduce_streams", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data<T>();
    const auto factor = static_cast<Compute<T>>(scale);
    T* to = y.mutable_data<T>();
    kernels::tiles_of<T>(kernels::sizes_of(x.shape())).for_each([=](std::int64_t begin, std::int64_t end) {
      std::vector<Compute<T>> sums(static_cast<std::size_t>(channels));
      for (std::int64_t token = begin; token < end; ++token) {
        std::ranges::fill(sums, 0);
        const T* stream = from + token * n * channels;
        for (std::int64_t i = 0; i < n; ++i, stream += channels)
          for (std::int64_t c = 0; c < channels; ++c) sums[static_cast<std::size_t>(c)] += factor * stream[c];
        std::ranges::transform(sums, to + token * channels, [](Compute<T> sum) { return static_cast<T>(sum); });
      }
    });
  });
  return y;
}

}  // namespace

Var expand_streams(const Var& x, std::int64_t n) {
  check_value(n >= 1, "expand_streams: n must be >= 1 but is {}", n);
  check_shape(x.rank() >= 1, "expand_streams: x must have shape [..., C] but is a scalar");
  if (Composed::active()) return broadcast_to(expand_dims(x, -2), x.shape().inserted(x.rank() - 1, n));
  return record("expand_streams", spread(x.value(), n, 1), {x}, [](const Tensor& dy) { return collect(dy, 1); });
}

Var reduce_streams(const Var& x, StreamReduction how) {
  check_shape(x.rank() >= 2, "reduce_streams: x must have shape [..., n, C] but has {}", x.shape());
  const std::int64_t n = x.size(-2);
  const double scale = how == StreamReduction::mean ? 1 / static_cast<double>(n) : 1;
  if (Composed::active()) return scale * sum(x, {-2});
  return record("reduce_streams", collect(x.value(), scale), {x},
                [n, scale](const Tensor& dy) { return spread(dy, n, scale); });
}

}  // namespace braid::mhc

#include <braid/mhc/ops/kept_streams.h>

#include <algorithm>
#include <cmath>

#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc {

KeptStream::KeptStream(std::shared_ptr<KeptStream> before, Tensor maps, Tensor f)
    : before_(std::move(before)), maps_(std::move(maps)), f_(std::move(f)) {}

const Tensor& KeptStream::x() {
  if (!x_.defined()) x_ = fused_write(before_->x(), maps_, f_);
  return x_;
}

Tensor fused_write(const Tensor& x, const Tensor& maps, const Tensor& f) {
  Tensor y(x.shape(), x.dtype());
  dispatch_float("ManifoldConstrainedHC", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const kernels::StreamSizes s = kernels::sizes_of(x.shape());
    const std::int64_t m = maps.size(-1);
    const T* h = maps.data<T>();
    kernels::read_write_kernels<T>().write(
        {s, {h + 2 * s.n, m}, {h + s.n, m}, x.data<T>(), f.data<T>(), y.mutable_data<T>()});
  });
  return y;
}

std::int64_t keep_interval(std::int64_t streams, std::int64_t sublayers) {
  check_value(streams >= 1, "keep_interval: streams must be >= 1 but is {}", streams);
  check_value(sublayers >= 0, "keep_interval: sublayers must be >= 0 but is {}", sublayers);
  const double n = static_cast<double>(streams), depth = static_cast<double>(sublayers);
  return std::max<std::int64_t>(1, std::llround(std::sqrt(n * depth / (n + 2))));
}

}  // namespace braid::mhc

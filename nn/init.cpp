#include <braid/nn/init.h>

#include <cmath>

#include <braid/core/map.h>

namespace braid::nn::init {
namespace {

/// fan_out along axis 0, fan_in along axis 1.
double fan(const char* name, const Shape& shape, int axis) {
  check_shape(shape.rank() >= 2, "{}: shape must have at least 2 axes to have fans but is {}", name, shape);
  return static_cast<double>(shape[axis]) * static_cast<double>(shape.axes(2, shape.rank()).numel());
}

/// The standard deviation of U(-bound, bound) is bound / sqrt(3).
const double kSqrt3 = std::sqrt(3.0);

double xavier_std(const char* name, const Shape& shape, double gain) {
  return gain * std::sqrt(2 / (fan(name, shape, 1) + fan(name, shape, 0)));
}

double kaiming_std(const char* name, const Shape& shape, double gain) { return gain / std::sqrt(fan(name, shape, 1)); }

Tensor placeholder(const Shape& shape, DType dtype) { return scalar(0, dtype).broadcast_to(shape); }

}  // namespace

Tensor normal(const Shape& shape, double std, Rng& rng, DType dtype) {
  if (Placeholders::active()) return placeholder(shape, dtype);
  return map(
      "normal", [std](auto z) { return static_cast<decltype(z)>(std) * z; }, randn(shape, rng, dtype));
}

Tensor uniform(const Shape& shape, double bound, Rng& rng, DType dtype) {
  if (Placeholders::active()) return placeholder(shape, dtype);
  return map(
      "uniform", [bound](auto u) { return static_cast<decltype(u)>(bound) * (2 * u - 1); }, rand(shape, rng, dtype));
}

Tensor constant(const Shape& shape, double value, DType dtype) {
  return Placeholders::active() ? placeholder(shape, dtype) : full(shape, value, dtype);
}

Tensor xavier_normal(const Shape& shape, Rng& rng, DType dtype, double gain) {
  return normal(shape, xavier_std("xavier_normal", shape, gain), rng, dtype);
}

Tensor xavier_uniform(const Shape& shape, Rng& rng, DType dtype, double gain) {
  return uniform(shape, kSqrt3 * xavier_std("xavier_uniform", shape, gain), rng, dtype);
}

Tensor kaiming_normal(const Shape& shape, Rng& rng, DType dtype, double gain) {
  return normal(shape, kaiming_std("kaiming_normal", shape, gain), rng, dtype);
}

Tensor kaiming_uniform(const Shape& shape, Rng& rng, DType dtype, double gain) {
  return uniform(shape, kSqrt3 * kaiming_std("kaiming_uniform", shape, gain), rng, dtype);
}

}  // namespace braid::nn::init

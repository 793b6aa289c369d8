#include <braid/autograd/ops/gelu.h>

#include <cmath>
#include <numbers>

#include <braid/autograd/kernels/elementwise.h>
#include <braid/core/map.h>

namespace braid {
namespace {

/// The standard normal distribution function, through erfc: exact far below zero as well.
constexpr auto kNormalCdf = [](auto x) {
  using T = decltype(x);
  return T{0.5} * std::erfc(-x / std::numbers::sqrt2_v<T>);
};

constexpr auto kNormalPdf = [](auto x) {
  using T = decltype(x);
  return std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T> * std::exp(-x * x / 2);
};

}  // namespace

Var gelu(const Var& x) {
  auto kernel = []<class T>(const T* x, T* y, std::int64_t n) { kernels::elementwise_kernels().of<T>().gelu(x, y, n); };
  return record("gelu", map_chunks("gelu", kernel, x.value()), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = []<class T>(const T* dy, const T* x, T* dx, std::int64_t n) {
      kernels::elementwise_kernels().of<T>().gelu_vjp(dy, x, dx, n);
    };
    return map_chunks("gelu", vjp, dy, x);
  });
}

// Highway has no erf. This form is for comparison with models that use it, so an element at a time will do.
Var gelu_erf(const Var& x) {
  auto forward = [](auto x) { return x * kNormalCdf(x); };
  Tensor y = map("gelu_erf", forward, x.value());
  return record("gelu_erf", std::move(y), {x}, [x = x.value()](const Tensor& dy) {
    auto vjp = [](auto dy, auto x) { return dy * (kNormalCdf(x) + x * kNormalPdf(x)); };
    return map("gelu_erf", vjp, dy, x);
  });
}

}  // namespace braid

#include <braid/autograd/ops/sqrt.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var sqrt(const Var& x) {
  const auto forward = [](auto x) { return std::sqrt(x); };
  const auto vjp = [](const auto& dy, const auto& y) { return dy / (2 * y); };
  return detail::record_of_y("sqrt", x, map("sqrt", forward, x.value()), vjp);
}

Var rsqrt(const Var& x) {
  const auto forward = [](auto x) { return 1 / std::sqrt(x); };
  const auto vjp = [](const auto& dy, const auto& y) { return dy * y * y * y / -2; };
  return detail::record_of_y("rsqrt", x, map("rsqrt", forward, x.value()), vjp);
}

}  // namespace braid

#include <braid/autograd/ops/clamp.h>

#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var clamp(const Var& x, double low, double high) {
  check_value(low <= high, "clamp: low must not exceed high but they are {} and {}", low, high);
  for (const double bound : {low, high}) scalar(bound, x.dtype(), "clamp");
  auto clamped = [low, high]<class T>(T x) { return x < T(low) ? T(low) : x > T(high) ? T(high) : x; };
  auto inside = [low, high](auto x) { return !(x < decltype(x)(low) || x > decltype(x)(high)); };
  return detail::record_passing("clamp", x, map_any("clamp", clamped, x.value()), x.value(), inside);
}

}  // namespace braid

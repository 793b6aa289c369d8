#include <braid/autograd/ops/clamp.h>

#include <braid/autograd/ops/where.h>
#include <braid/core/map.h>

namespace braid {

Var clamp(const Var& x, double low, double high) {
  check_value(low <= high, "clamp: low must not exceed high but they are {} and {}", low, high);
  for (const double bound : {low, high}) scalar(bound, x.dtype(), "clamp");
  auto clamped = [low, high](auto x) {
    using T = decltype(x);
    return x < T(low) ? T(low) : x > T(high) ? T(high) : x;
  };
  auto vjp = [low, high](auto dy, auto x) {
    using T = decltype(x);
    return x < T(low) || x > T(high) ? T{0} : dy;
  };
  auto inside = [low, high](auto x) { return !(x < decltype(x)(low) || x > decltype(x)(high)); };
  return record(
      "clamp", map_any("clamp", clamped, x.value()), {x},
      [vjp, x = x.value()](const Tensor& dy) { return map("clamp", vjp, dy, x); },
      [inside](const Applied& op) { return where(map_truth("clamp", inside, op.x().value()), op.dy(), 0.0); });
}

}  // namespace braid

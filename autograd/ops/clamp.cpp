#include <braid/autograd/ops/clamp.h>

#include <algorithm>

#include <braid/autograd/ops/detail/elementwise.h>

namespace braid {

Var clamp(const Var& x, double low, double high) {
  check_value(low <= high, "clamp: low must not exceed high but they are {} and {}", low, high);
  for (const double bound : {low, high}) scalar(bound, x.dtype(), "clamp");
  // Without branches, so that compilers make vectors of them.
  auto clamped = [low, high]<class T>(T x) { return std::min(std::max(x, T(low)), T(high)); };
  auto inside = [low, high]<class T>(T x) { return !((x < T(low)) | (x > T(high))); };
  return detail::record_passing("clamp", x, map_any("clamp", clamped, x.value()), x.value(), inside);
}

}  // namespace braid

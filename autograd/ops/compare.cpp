#include <braid/autograd/ops/compare.h>

#include <functional>

#include <braid/core/map.h>

namespace braid {

Tensor equal(const Var& a, const Var& b) { return map_truth("equal", std::equal_to<>(), a.value(), b.value()); }

Tensor not_equal(const Var& a, const Var& b) {
  return map_truth("not_equal", std::not_equal_to<>(), a.value(), b.value());
}

Tensor less(const Var& a, const Var& b) { return map_truth("less", std::less<>(), a.value(), b.value()); }

Tensor less_equal(const Var& a, const Var& b) {
  return map_truth("less_equal", std::less_equal<>(), a.value(), b.value());
}

Tensor greater(const Var& a, const Var& b) { return map_truth("greater", std::greater<>(), a.value(), b.value()); }

Tensor greater_equal(const Var& a, const Var& b) {
  return map_truth("greater_equal", std::greater_equal<>(), a.value(), b.value());
}

}  // namespace braid

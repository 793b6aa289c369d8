#include <braid/autograd/ops/compare.h>

#include <functional>

#include <braid/core/map.h>

namespace braid {

static Tensor compare(const char* op, auto holds, const Var& a, const Var& b) {
  return map_truth(op, holds, a.value(), b.value());
}

Tensor equal(const Var& a, const Var& b) { return compare("equal", std::equal_to(), a, b); }
Tensor not_equal(const Var& a, const Var& b) { return compare("not_equal", std::not_equal_to(), a, b); }
Tensor less(const Var& a, const Var& b) { return compare("less", std::less(), a, b); }
Tensor less_equal(const Var& a, const Var& b) { return compare("less_equal", std::less_equal(), a, b); }
Tensor greater(const Var& a, const Var& b) { return compare("greater", std::greater(), a, b); }
Tensor greater_equal(const Var& a, const Var& b) { return compare("greater_equal", std::greater_equal(), a, b); }

}  // namespace braid

#include <braid/autograd/ops/maximum.h>

#include <cmath>
#include <functional>
#include <limits>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/where.h>
#include <braid/core/map.h>
#include <braid/core/reduce.h>

namespace braid {

/// Records `y = choose(a, b)`; the cotangent goes to the chosen one.
static Var choose(const char* op, const Var& a, const Var& b, auto better) {
  auto pick = [better](auto a, auto b) { return better(a, b) || a != a ? a : b; };
  auto vjp = [better]<class T>(T dy, T mine, T other) {
    if (std::isunordered(mine, other)) return std::numeric_limits<T>::quiet_NaN();
    return mine == other ? dy / 2 : better(other, mine) ? T{0} : dy;
  };
  const auto rule = [op, vjp](const Applied& at) {
    const auto cotangent = [&](const Var& mine, const Var& other) {
      const Tensor share = map(op, vjp, scalar(1, mine.dtype()), mine.value(), other.value());
      return detail::sum_to(where(share, at.dy() * share, 0.0), mine.shape());
    };
    return std::array{at.needs[0] ? cotangent(at.x(0), at.x(1)) : Var(),
                      at.needs[1] ? cotangent(at.x(1), at.x(0)) : Var()};
  };
  return record(
      op, map_any(op, pick, a.value(), b.value()), {a, b},
      [op, vjp, a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) {
        return std::array{needs[0] ? sum_to(map(op, vjp, dy, a, b), a.shape()) : Tensor(),
                          needs[1] ? sum_to(map(op, vjp, dy, b, a), b.shape()) : Tensor()};
      },
      rule);
}

Var maximum(const Var& a, const Var& b) { return choose("maximum", a, b, std::greater<>()); }

Var minimum(const Var& a, const Var& b) { return choose("minimum", a, b, std::less<>()); }

}  // namespace braid

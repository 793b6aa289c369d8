#include <braid/autograd/ops/arithmetic.h>

#include <braid/core/map.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kSub = [](auto a, auto b) { return a - b; };
constexpr auto kMul = [](auto a, auto b) { return a * b; };
constexpr auto kDiv = [](auto a, auto b) { return a / b; };
constexpr auto kNeg = [](auto x) { return -x; };

}  // namespace

Var add(const Var& a, const Var& b) {
  return record("add", map("add", kAdd, a.value(), b.value()), {a, b},
                [a = a.shape(), b = b.shape()](const Tensor& dy, const Needs& needs) {
                  return std::vector{needs[0] ? sum_to(dy, a) : Tensor(), needs[1] ? sum_to(dy, b) : Tensor()};
                });
}

Var sub(const Var& a, const Var& b) {
  return record(
      "sub", map("sub", kSub, a.value(), b.value()), {a, b},
      [a = a.shape(), b = b.shape()](const Tensor& dy, const Needs& needs) {
        return std::vector{needs[0] ? sum_to(dy, a) : Tensor(), needs[1] ? map("sub", kNeg, sum_to(dy, b)) : Tensor()};
      });
}

Var mul(const Var& a, const Var& b) {
  return record("mul", map("mul", kMul, a.value(), b.value()), {a, b},
                [a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) {
                  return std::vector{needs[0] ? sum_to(map("mul", kMul, dy, b), a.shape()) : Tensor(),
                                     needs[1] ? sum_to(map("mul", kMul, dy, a), b.shape()) : Tensor()};
                });
}

Var div(const Var& a, const Var& b) {
  Tensor y = map("div", kDiv, a.value(), b.value());
  return record("div", y, {a, b}, [a = a.shape(), b = b.value(), y](const Tensor& dy, const Needs& needs) {
    // db = -dy a / b^2 = -dy y / b
    auto db = [](auto dy, auto y, auto b) { return -dy * y / b; };
    return std::vector{needs[0] ? sum_to(map("div", kDiv, dy, b), a) : Tensor(),
                       needs[1] ? sum_to(map("div", db, dy, y, b), b.shape()) : Tensor()};
  });
}

Var neg(const Var& x) {
  return record("neg", map("neg", kNeg, x.value()), {x}, [](const Tensor& dy) { return map("neg", kNeg, dy); });
}

}  // namespace braid

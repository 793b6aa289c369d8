#include <braid/autograd/ops/arithmetic.h>

#include <algorithm>
#include <type_traits>

#include <braid/core/detail/wrapping.h>
#include <braid/core/map.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

using detail::wrapping;

constexpr auto kAdd = []<class T>(T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); };
constexpr auto kSub = []<class T>(T a, T b) { return static_cast<T>(wrapping(a) - wrapping(b)); };
constexpr auto kMul = []<class T>(T a, T b) { return static_cast<T>(wrapping(a) * wrapping(b)); };
constexpr auto kNeg = []<class T>(T x) { return static_cast<T>(-wrapping(x)); };
constexpr auto kDiv = []<class T>(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b == -1 ? kNeg(a) : a / b;  // the smallest integer has no counterpart
  else
    return a / b;
};

bool has_zero(const Tensor& integers) {
  const Tensor x = integers.contiguous();
  const auto* first = x.data<std::int32_t>();
  return std::find(first, first + x.numel(), 0) != first + x.numel();
}

}  // namespace

Var add(const Var& a, const Var& b) {
  return record("add", map_any("add", kAdd, a.value(), b.value()), {a, b},
                [a = a.shape(), b = b.shape()](const Tensor& dy, const Needs& needs) {
                  return std::vector{needs[0] ? sum_to(dy, a) : Tensor(), needs[1] ? sum_to(dy, b) : Tensor()};
                });
}

Var sub(const Var& a, const Var& b) {
  return record(
      "sub", map_any("sub", kSub, a.value(), b.value()), {a, b},
      [a = a.shape(), b = b.shape()](const Tensor& dy, const Needs& needs) {
        return std::vector{needs[0] ? sum_to(dy, a) : Tensor(), needs[1] ? map("sub", kNeg, sum_to(dy, b)) : Tensor()};
      });
}

Var mul(const Var& a, const Var& b) {
  return record("mul", map_any("mul", kMul, a.value(), b.value()), {a, b},
                [a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) {
                  return std::vector{needs[0] ? sum_to(map("mul", kMul, dy, b), a.shape()) : Tensor(),
                                     needs[1] ? sum_to(map("mul", kMul, dy, a), b.shape()) : Tensor()};
                });
}

Var div(const Var& a, const Var& b) {
  check_value(b.dtype() != DType::i32 || !has_zero(b.value()), "div: integers must not be divided by 0");
  Tensor y = map_any("div", kDiv, a.value(), b.value());
  return record("div", y, {a, b}, [a = a.shape(), b = b.value(), y](const Tensor& dy, const Needs& needs) {
    // db = -dy a / b^2 = -dy y / b
    auto db = [](auto dy, auto y, auto b) { return -dy * y / b; };
    return std::vector{needs[0] ? sum_to(map("div", kDiv, dy, b), a) : Tensor(),
                       needs[1] ? sum_to(map("div", db, dy, y, b), b.shape()) : Tensor()};
  });
}

Var neg(const Var& x) {
  return record("neg", map_any("neg", kNeg, x.value()), {x}, [](const Tensor& dy) { return map("neg", kNeg, dy); });
}

}  // namespace braid

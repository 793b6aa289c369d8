#include <braid/autograd/ops/arithmetic.h>

#include <algorithm>
#include <type_traits>

#include <braid/autograd/detail/tape_state.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/detail/elementwise.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

using braid::sum_to, detail::sum_to;

/// Converts i32 to unsigned, whose sums, differences and products wrap around instead of overflowing; floats stay.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::uint32_t>(x);
  else
    return x;
}

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

Var product(const Var& a, const Var& b) { return a * b; }
/// Without variables, which take longer than small tensors do.
Tensor product(const Tensor& a, const Tensor& b) { return map_any("mul", kMul, a, b); }

/// a a, whose cotangent takes half the passes of that of a b.
Var square(const Var& x) {
  const auto vjp = [](const auto& dy, const auto& x) { return 2 * (dy * x); };
  return detail::record_of_x("mul", x, map("mul", kMul, x.value(), x.value()), vjp);
}

}  // namespace

Var add(const Var& a, const Var& b) {
  return record("add", map_any("add", kAdd, a.value(), b.value()), {a, b},
                [a = a.shape(), b = b.shape()](const Var& dy, const Needs& needs) {
                  return std::array{needs[0] ? sum_to(dy, a) : Var(), needs[1] ? sum_to(dy, b) : Var()};
                });
}

Var sub(const Var& a, const Var& b) {
  return record("sub", map_any("sub", kSub, a.value(), b.value()), {a, b},
                [a = a.shape(), b = b.shape()](const Var& dy, const Needs& needs) {
                  return std::array{needs[0] ? sum_to(dy, a) : Var(), needs[1] ? neg(sum_to(dy, b)) : Var()};
                });
}

Var mul(const Var& a, const Var& b) {
  if (detail::TapeState::same(a, b) && detail::of_higher_order(std::span(&a, 1))) return square(a);
  const auto vjp = []<class T>(const T& dy, const T& a, const T& b, const Needs& needs) {
    return std::array{needs[0] ? sum_to(product(dy, b), a.shape()) : T(),
                      needs[1] ? sum_to(product(dy, a), b.shape()) : T()};
  };
  return record(
      "mul", product(a.value(), b.value()), {a, b},
      [vjp, a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) { return vjp(dy, a, b, needs); },
      [vjp](const Applied& op) { return vjp(op.dy(), op.x(0), op.x(1), op.needs); });
}

Var div(const Var& a, const Var& b) {
  check_value(b.dtype() != DType::i32 || !has_zero(b.value()), "div: integers must not be divided by 0");
  Tensor y = map_any("div", kDiv, a.value(), b.value());
  // db = -dy a / b^2 = -dy y / b
  return record(
      "div", y, {a, b},
      [a = a.shape(), b = b.value(), y](const Tensor& dy, const Needs& needs) {
        auto db = [](auto dy, auto y, auto b) { return -dy * y / b; };
        return std::array{needs[0] ? sum_to(map("div", kDiv, dy, b), a) : Tensor(),
                          needs[1] ? sum_to(map("div", db, dy, y, b), b.shape()) : Tensor()};
      },
      [](const Applied& op) {
        const auto& [a, b] = std::tie(op.x(0), op.x(1));
        return std::array{op.needs[0] ? sum_to(op.dy() / b, a.shape()) : Var(),
                          op.needs[1] ? sum_to(-op.dy() * op.y() / b, b.shape()) : Var()};
      });
}

Var neg(const Var& x) {
  return record("neg", map_any("neg", kNeg, x.value()), {x}, [](const Var& dy) { return neg(dy); });
}

}  // namespace braid

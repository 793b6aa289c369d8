#include <braid/autograd/ops/pow.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/log.h>
#include <braid/autograd/ops/where.h>
#include <braid/core/map.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

/// `x^p`; small whole powers without the cost of std::pow.
template <class T>
T power(T x, T p) {
  return p == 1 ? x : p == 2 ? x * x : p == 3 ? x * x * x : std::pow(x, p);
}

/// d(a^b)/da = b a^(b - 1); 0 where b = 0, also at a = 0.
constexpr auto kBaseVjp = [](auto dy, auto a, auto b) { return b == 0 ? decltype(a){0} : dy * b * power(a, b - 1); };

/// d(a^b)/db = a^b log(a); 0 where a = 0 and b >= 0, where a^b does not depend on b or has no derivative.
constexpr auto kExponentVjp = [](auto dy, auto a, auto b) {
  return a == 0 && b >= 0 ? decltype(a){0} : dy * std::pow(a, b) * std::log(a);
};

/// The same as variables. Where a = 0, the powers that would not be finite are those of 1, and not used.
std::vector<Var> rule(const Applied& op) {
  const Var &a = op.x(0), &b = op.x(1);
  auto both_zero = [](auto a, auto b) { return a == 0 && b == 0; };
  auto constant = [](auto a, auto b) { return a == 0 && b >= 0; };
  const Tensor still = map_truth("pow", both_zero, a.value(), b.value());
  const Tensor fixed = map_truth("pow", constant, a.value(), b.value());
  const auto da = [&] { return where(still, 0.0, op.dy() * b * pow(where(still, 1.0, a), b - 1)); };
  const auto db = [&] { return where(fixed, 0.0, op.dy() * op.y() * log(where(fixed, 1.0, a))); };
  return {op.needs[0] ? detail::sum_to(da(), a.shape()) : Var(), op.needs[1] ? detail::sum_to(db(), b.shape()) : Var()};
}

}  // namespace

Var pow(const Var& x, double p) {
  auto forward = [p](auto x) { return power(x, static_cast<decltype(x)>(p)); };
  return record(
      "pow", map("pow", forward, x.value()), {x},
      [x = x.value(), p](const Tensor& dy) {
        auto vjp = [p](auto dy, auto x) { return kBaseVjp(dy, x, static_cast<decltype(x)>(p)); };
        return map("pow", vjp, dy, x);
      },
      [p](const Applied& op) { return p == 0 ? Var() : op.dy() * (p * pow(op.x(), p - 1)); });
}

Var pow(const Var& a, const Var& b) {
  auto forward = [](auto a, auto b) { return std::pow(a, b); };
  return record(
      "pow", map("pow", forward, a.value(), b.value()), {a, b},
      [a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) {
        return std::array{needs[0] ? sum_to(map("pow", kBaseVjp, dy, a, b), a.shape()) : Tensor(),
                          needs[1] ? sum_to(map("pow", kExponentVjp, dy, a, b), b.shape()) : Tensor()};
      },
      rule);
}

}  // namespace braid

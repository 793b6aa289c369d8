// Your own op: a fused forward pass, a hand-written vjp, a rule for higher derivatives, and a check that they agree.
#include <cmath>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

// The op, as it would be in a separate file.

constexpr auto kSigmoid = [](auto x) { return 1 / (1 + std::exp(-x)); };

/// The gate of a SwiGLU layer in one pass: `y = silu(a) * b = a sigmoid(a) b`. arXiv:2002.05202.
/// a, b of one shape -> y of that shape. Throws ShapeError when the shapes differ.
Var swiglu(const Var& a, const Var& b) {
  check_shape(a.shape() == b.shape(), "swiglu: b must have the shape {} of a but has {}", a.shape(), b.shape());
  const auto forward = [](auto a, auto b) { return a * kSigmoid(a) * b; };
  Tensor y = map("swiglu", forward, a.value(), b.value());
  // With s = sigmoid(a): da = dy b s (1 + a (1 - s)), db = dy a s
  const auto vjp = [a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) {
    const auto da = [](auto dy, auto a, auto b) {
      const auto s = kSigmoid(a);
      return dy * b * s * (1 + a * (1 - s));
    };
    const auto db = [](auto dy, auto a) { return dy * a * kSigmoid(a); };
    return std::vector{needs[0] ? map("swiglu", da, dy, a, b) : Tensor(),
                       needs[1] ? map("swiglu", db, dy, a) : Tensor()};
  };
  // The same made of ops, for derivatives of higher order.
  const auto rule = [](const Applied& op) {
    const Var a = op.x(0), b = op.x(1), s = sigmoid(a);
    return std::vector{op.dy() * b * s * (1 + a * (1 - s)), op.dy() * a * s};
  };
  return record("swiglu", y, {a, b}, vjp, rule);
}

// Its use and its tests.

void run() {
  Rng rng(1);
  const Tensor a = randn({3, 5}, rng, DType::f64), b = randn({3, 5}, rng, DType::f64);

  const GradcheckResult result = gradcheck([](auto x) { return swiglu(x[0], x[1]); }, {a, b});
  fmt::print("gradcheck: {} derivatives, worst relative error {:.1e}\n", result.derivatives, result.worst);
  const GradcheckResult second = gradcheck([](auto x) { return swiglu(x[0], x[1]); }, {a, b}, {.order = 2});
  fmt::print("with the second: {} derivatives, worst relative error {:.1e}\n", second.derivatives, second.worst);

  const Tensor difference = (swiglu(a, b) - silu(a) * b).value();
  fmt::print("fused - composed: at most {:.1e}\n", reduce_max(abs(difference).value()).item());

  const auto [da, db] = vjp(swiglu, ones({3, 5}, DType::f64), a, b);
  fmt::print("da =\n{}\ndb =\n{}\n", da, db);
  check<Error>(second.ok, "gradcheck: {}", second.message);
}

int main(int argc, char** argv) {
  return apps::run_main("custom_op", "A fused op with a hand-written vjp, verified by finite differences.", argc, argv,
                        run);
}

// Every error that a docstring of autograd names, but for those of ops: see tests/throws.h.
#include <tests/throws.h>

#include <cmath>

#include <braid/autograd/check_finite.h>
#include <braid/autograd/checkpoint.h>
#include <braid/autograd/derivatives.h>
#include <braid/autograd/draw.h>
#include <braid/autograd/format.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/autograd/verify/gradcheck.h>

namespace braid::throws_test {
namespace {

const Tensor kX = ones({2, 3}), kDouble = ones({2, 3}, DType::f64), kInt = ones({2, 3}, DType::i32);

/// Two parameters of one name.
struct Twins {
  Var a = kX, b = kX;
  void params(auto&& visit) {
    visit("a", a);
    visit("a", b);
  }
};

Var square(const Var& x) { return x * x; }
Var sum_of_squares(const Var& x) { return sum(x * x); }
/// An op without a rule.
Var stuck(const Var& x) {
  return record("stuck", x.value(), {x}, [](const Tensor& dy) { return dy; });
}

TEST(AutogradThrows, Variables) {
  Tape tape;
  Var x = tape.watch(kX);
  throws<Error>("Var::operator Tensor", [&] { static_cast<void>(Tensor{x}); });
  throws<Error>("Var::mutable_value", [&] { x.mutable_value(); });
  throws<ShapeError>("Var::item", [&] { x.item(); });
  throws<ShapeError>("Var::size", [&] { x.size(2); });
  throws<ShapeError>("Var::at", [&] { x.at({0, 3}); });
  throws<ValueError>("to_string", [&] { to_string(x, {.precision = -1}); });
  throws<Error>("for_each_param", [] {
    Twins twins;
    for_each_param(twins, [](const std::string&, Var&) {});
  });
  const CheckFinite scope;
  throws<NonFiniteError>("CheckFinite", [&] { log(-x); });
}

TEST(AutogradThrows, Tapes) {
  Tape tape, other, unused, broken;
  const Var x = tape.watch(kX), y = other.watch(kX), z = broken.watch(kX), loss = sum(x);
  const Var bad = record("bad", scalar(1), {z}, [](const Tensor&) -> Tensor { throw std::runtime_error("bad"); });
  throws<DTypeError>("Tape::watch", [&] { tape.watch(kInt); });
  throws<Error>("Tape::watch", [&] { tape.watch(Tensor()); });
  throws<Error>("record", [&] { x + y; });
  throws<Error>("Tape::gradient", [&] { static_cast<void>(tape.gradient(x)); });
  throws<Error>("Tape::reaches", [&] { tape.reaches(x); });
  throws<ShapeError>("Tape::backward", [&] { tape.backward(x); });
  throws<ShapeError>("Tape::backward", [&] { tape.backward(x, ones({2})); });
  throws<DTypeError>("Tape::backward", [&] { tape.backward(x, kDouble); });
  throws<Error>("Tape::backward", [&] { tape.backward(sum(y)); });
  tape.backward(loss);
  throws<Error>("Tape::backward", [&] { tape.backward(loss); });
  throws<Error>("Tape::gradient", [&] { static_cast<void>(tape.gradient(loss)); });
  throws<Error>("draw", [&] { draw(tape); });
  other.backward(sum(y), [](std::size_t, Tensor) {});
  throws<Error>("Tape::gradient", [&] { static_cast<void>(other.gradient(y)); });
  EXPECT_THROW(broken.backward(bad), std::runtime_error);
  throws<Error>("Tape::gradient", [&] { static_cast<void>(broken.gradient(z)); });
  throws<Error>("Tape::reaches", [&] { broken.reaches(z); });
}

TEST(AutogradThrows, Derivatives) {
  Tape tape;
  const Var x = tape.watch(kX);
  const auto of_captured = [&](const Var& v) { return sum(v * x); };
  const auto slope = [](const Var& v) { return sum(grad([](const Var& w) { return sum(stuck(square(w))); })(v)); };
  throws<Error>("HigherOrder", [&] { grad(slope)(Var(kX)); });
  throws<Error>("record", [&] { grad(slope)(Var(kX)); });
  throws<Error>("grad", [&] { grad(sum_of_squares)(x); });
  throws<ShapeError>("grad", [] { grad(square)(Var(kX)); });
  throws<Error>("jvp", [&] { jvp(square, x, kX); });
  throws<ShapeError>("jvp", [] { jvp(square, Var(kX), ones({2})); });
  throws<DTypeError>("jvp", [] { jvp(square, Var(kX), kDouble); });
  throws<DTypeError>("jvp", [] { jvp(square, Var(kInt), kInt); });
  throws<Error>("hvp", [&] { hvp(sum_of_squares, x, kX); });
  throws<ShapeError>("hvp", [] { hvp(square, Var(kX), kX); });
  throws<ShapeError>("hvp", [] { hvp(sum_of_squares, Var(kX), ones({2})); });
  throws<DTypeError>("hvp", [] { hvp(sum_of_squares, Var(kX), kDouble); });
  throws<Error>("jacobian", [&] { jacobian(square, x); });
  throws<Error>("jacobian", [&] { jacobian(of_captured, kX); });
  throws<Error>("hessian", [&] { hessian(sum_of_squares, x); });
  throws<ShapeError>("hessian", [] { hessian(square, kX); });
  throws<ShapeError>("value_and_grad", [] { value_and_grad(square)(Var(kX)); });
  throws<Error>("value_and_grad", [] { value_and_grad([](const Var&) { return Var(scalar(1)); })(Var(kX)); });
  throws<Error>("value_and_grad", [&] { value_and_grad(sum_of_squares)(x); });
  throws<Error>("vjp", [&] { vjp(square, kX, x); });
  throws<Error>("checkpoint", [&] { checkpoint(of_captured, Var(kX)); });
  throws<Error>("checkpoint", [&] {
    double calls = 0;
    tape.backward(sum(checkpoint([&](const Var& v) { return v * ++calls; }, x)));
  });
  throws<DTypeError>("gradcheck", [] { gradcheck([](auto v) { return square(v[0]); }, {kX}); });
  throws<ValueError>("gradcheck", [] { gradcheck([](auto v) { return square(v[0]); }, {kDouble}, {.order = 3}); });
}

}  // namespace
}  // namespace braid::throws_test

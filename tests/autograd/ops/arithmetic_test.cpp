#include <braid/autograd/ops/arithmetic.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::arithmetic_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min(),
                       kHighest = std::numeric_limits<std::int32_t>::max();
const Tensor kA = f64({2}, {6, 8}), kB = f64({2}, {2, 4});

TEST(Arithmetic, ComputesWithPlainTensors) {
  const Tensor sum = kA + kB, scaled = 2 * kA * kB, mixed = 2.0 * Var(kA) + kB;
  expect_values(sum, {2}, {8, 12});
  expect_values(scaled, {2}, {24, 64});
  expect_values(mixed, {2}, {14, 20});
}

TEST(Arithmetic, ComputesWithIntegers) {
  const Tensor a = i32({4}, {7, -7, 6, 0}), b = i32({4}, {2, 2, -4, 5});
  EXPECT_EQ((a + b).dtype(), DType::i32);
  expect_values(a + b, {4}, {9, -5, 2, 5});
  expect_values(a - b, {4}, {5, -9, 10, -5});
  expect_values(a * b, {4}, {14, -14, -24, 0});
  expect_values(a / b, {4}, {3, -3, -1, 0});  // as in C++
  expect_values(-a, {4}, {-7, 7, -6, 0});
  expect_values(1 - 2 * a / 3, {4}, {-3, 5, -3, 1});
}

TEST(Arithmetic, OfIntegersWrapsAround) {
  const Tensor low = i32({}, {kLowest}), high = i32({}, {kHighest});
  EXPECT_EQ((high + 1).item(), kLowest);
  EXPECT_EQ((low - 1).item(), kHighest);
  EXPECT_EQ((high * high).item(), 1);
  EXPECT_EQ((low * -1).item(), kLowest);
  EXPECT_EQ((-low).item(), kLowest);
  EXPECT_EQ((low / -1).item(), kLowest);
}

TEST(Arithmetic, OfIntegersRejectsZeroDivisorsAndFractions) {
  const Tensor a = i32({2}, {1, 2});
  EXPECT_THAT([&] { a / i32({2}, {1, 0}); }, ThrowsMessage<ValueError>("div: integers must not be divided by 0"));
  EXPECT_THAT([&] { a / 0; }, ThrowsMessage<ValueError>("div: integers must not be divided by 0"));
  EXPECT_THAT([&] { a * 0.5; }, ThrowsMessage<ValueError>("mul: value must be an integer that fits i32 but is 0.5"));
  EXPECT_THAT([&] { 1e10 + Var(a); },
              ThrowsMessage<ValueError>("add: value must be an integer that fits i32 but is 10000000000"));
  EXPECT_THAT([&] { a - zeros({2}); },
              ThrowsMessage<DTypeError>("sub: inputs must have the same dtype but have i32 and f32"));
}

TEST(Arithmetic, CompoundAssignmentRebinds) {
  Var x = kA;
  const Var before = x;
  x += kB;
  expect_values(x, {2}, {8, 12});
  x -= Var(kB);
  x *= kB;
  expect_values(x, {2}, {12, 32});
  x /= kB;
  expect_values(x, {2}, {6, 8});
  expect_values(before, {2}, {6, 8});
}

TEST(Arithmetic, CompoundAssignmentTakesNumbersOfAnyType) {
  Var x = kA.to(DType::f32);
  ((((x += 2) -= 1.0F) *= 3.0) /= 2) += 0;
  expect_values(x, {2}, {10.5, 13.5});
  EXPECT_EQ(x.dtype(), DType::f32);
}

TEST(Arithmetic, CompoundAssignmentPassesGradcheck) {
  const auto f = [](auto x) {
    Var y = x[0];
    y *= x[1];
    y += x[0];
    y -= 3;
    y /= x[1];
    return y *= y;
  };
  expect_gradients(f, {normal({2, 3}, 1), f64({3}, {1, -2, 0.5})});
}

TEST(Arithmetic, CompoundAssignmentBroadcasts) {
  Var x = kA;
  x += zeros({3, 1}, DType::f64);
  EXPECT_EQ(x.shape(), (Shape{3, 2}));
  EXPECT_THAT([&] { x -= ones({5}, DType::f64); },
              ThrowsMessage<ShapeError>("sub: shapes [3, 2] and [5] do not broadcast"));
  EXPECT_THAT([&] { x *= ones({2}); },
              ThrowsMessage<DTypeError>("mul: inputs must have the same dtype but have f64 and f32"));
}

TEST(Arithmetic, CompoundAssignmentTakesTensors) {
  Tensor x = f64({2}, {1, 2});
  const Tensor before = x;
  x += f64({2}, {1, 3});
  x *= 2;
  x -= Var(f64({2}, {1, 1}));
  x /= 3.0;
  expect_values(x, {2}, {1, 3});
  expect_values(before, {2}, {1, 2});
  x += x;
  expect_values(x, {2}, {2, 6});
}

TEST(Arithmetic, CompoundAssignmentToATensorRefusesATape) {
  Tape tape;
  Tensor x = f64({2}, {1, 2});
  EXPECT_THAT([&] { x += tape.watch(f64({2}, {1, 1})); }, ThrowsMessage<Error>(HasSubstr("is on a tape")));
  expect_values(x, {2}, {1, 2});
}

}  // namespace
}  // namespace braid::op_tests::arithmetic_test

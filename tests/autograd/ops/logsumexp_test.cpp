#include <braid/autograd/ops/logsumexp.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops/exp.h>
#include <braid/autograd/ops/log.h>
#include <braid/autograd/ops/sum.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::logsumexp_test {
namespace {

using ::testing::ThrowsMessage;

TEST(Logsumexp, MatchesTheDefinition) {
  for (const std::int64_t n : {1, 2, 7, 16, 33}) {
    const Tensor x = normal({4, n});
    expect_close(logsumexp(x, {1}).value(), log(sum(exp(x), {1})).value(), 1e-14);
    expect_close(logsumexp(x.to(DType::f32), {1}).value(), log(sum(exp(x), {1})).value(), 1e-6);
  }
}

TEST(Logsumexp, RunsAlongAnyAxes) {
  const Tensor x = normal({3, 4, 5});
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{2, 0}})
    for (const bool keep_dims : {false, true})
      expect_close(logsumexp(x, axes, keep_dims).value(), log(sum(exp(x), axes, keep_dims)).value(), 1e-14);
}

TEST(Logsumexp, LargeArgumentsDoNotOverflow) {
  expect_values(logsumexp(f64({2}, {1e4, 1e4})), {}, {1e4 + std::log(2)}, 1e-15);
}

TEST(Logsumexp, InfinitiesStay) {
  expect_values(logsumexp(f64({2}, {-kInfinity, 3})), {}, {3});
  expect_values(logsumexp(f64({2}, {-kInfinity, -kInfinity})), {}, {-kInfinity});
  expect_values(logsumexp(f64({2}, {kInfinity, 0})), {}, {kInfinity});
  EXPECT_TRUE(std::isnan(logsumexp(f64({2}, {kNaN, 0})).item()));
}

TEST(Logsumexp, OverNothingIsMinusInfinity) {
  expect_values(logsumexp(zeros({2, 0}, DType::f64), {1}), {2}, {-kInfinity, -kInfinity});
}

TEST(Logsumexp, MinusInfinitiesGetNoGradient) {
  const auto f = [](std::span<const Var> x) { return logsumexp(x[0]); };
  expect_values(gradients(f, {f64({2}, {-kInfinity, 3})}, scalar(2, DType::f64))[0], {2}, {0, 2});
  const Tensor nothing = f64({2}, {-kInfinity, -kInfinity});
  expect_values(gradients(f, {nothing}, scalar(2, DType::f64))[0], {2}, {0, 0});
  expect_values(hvp([](const Var& x) { return logsumexp(x); }, nothing, ones({2}, DType::f64)), {2}, {0, 0});
}

TEST(Logsumexp, RejectsIntegers) {
  EXPECT_THAT([] { logsumexp(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("logsumexp: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::logsumexp_test

#include <braid/autograd/ops/var.h>

#include <tests/autograd/ops/support.h>
#include <cmath>

#include <braid/autograd/ops/arithmetic.h>

namespace braid::op_tests::var_test {
namespace {

using ::testing::ThrowsMessage;

/// By the definition, in long double.
double reference(const std::vector<double>& x, double correction) {
  long double sum = 0, squares = 0;
  for (const double v : x) sum += v;
  const long double mean = sum / static_cast<long double>(x.size());
  for (const double v : x) squares += (v - mean) * (v - mean);
  return static_cast<double>(squares / (static_cast<long double>(x.size()) - correction));
}

TEST(VarOp, MatchesTheDefinition) {
  for (const std::int64_t n : {2, 3, 17, 5000})
    for (const double correction : {0.0, 1.0, 1.5})
      for (const DType dtype : {DType::f32, DType::f64}) {
        const Tensor x = normal({2, n}, 1, dtype);
        const std::vector<double> first = x.select(0, 0).to_vector<double>();
        const double tolerance = dtype == DType::f64 ? 1e-13 : 1e-5;
        EXPECT_NEAR(var(x, 1, false, correction).value().at({0}), reference(first, correction), tolerance);
        EXPECT_NEAR(stddev(x, 1, false, correction).value().at({0}), std::sqrt(reference(first, correction)),
                    tolerance);
        EXPECT_NEAR(var(x, {}, false, correction).item(), reference(x.to_vector<double>(), correction), tolerance);
      }
}

TEST(VarOp, ReducesTheAxesThatAreGiven) {
  const Tensor x = f64({2, 2, 2}, {1, 3, 0, 0, 5, 9, -1, 1});
  expect_values(var(x, -1), {2, 2}, {2, 0, 8, 2});
  expect_values(var(x, 2, true, 0), {2, 2, 1}, {1, 0, 4, 1});
  expect_values(stddev(x, {0}, false, 0), {2, 2}, {2, 3, 0.5, 0.5});
  expect_values(var(x, {0, 2}, false, 0), {2}, {8.75, 0.5});
  expect_values(var(x.transpose(0, 2), {2}, true, 0), {2, 2, 1}, {4, 0.25, 9, 0.25});
}

TEST(VarOp, KeepsItsPrecisionFarFromZero) {
  const Tensor x = f64({4}, {1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3});
  EXPECT_EQ(var(x, {}, false, 0).item(), 1.25);
  // In f32 the mean 10000.00065 is rounded to 10000.001, which is off by a third of a standard deviation.
  const Tensor single = (Var(f64({3}, {0, 0, 2})) * 0x1p-10 + 10000).value().to(DType::f32);
  EXPECT_NEAR(var(single, {}, false, 0).item(), 8.0 / 9 * 0x1p-20, 1e-6 * 0x1p-20);
  const Composed composed;
  EXPECT_EQ(var(Tensor::of<float>({2}, {1e8F, 1e8F + 8})).item(), 32);  // no number of f32 is between them
}

TEST(VarOp, IsWithinOneAndAHalfUlpInF32) {
  for (const double offset : {0, 1000})
    for (const std::int64_t n : {10, 1000, 100000}) {
      const Tensor x = (Var(normal({n}, 1)) + offset).value().to(DType::f32);
      const double exact = reference(x.to_vector<double>(), 1), ulp = std::ldexp(1, std::ilogb(exact) - 23);
      EXPECT_NEAR(var(x).item(), exact, 1.5 * ulp) << n << " numbers around " << offset;
    }
}

TEST(VarOp, IsNaNWithoutEnoughElements) {
  EXPECT_TRUE(std::isnan(var(f64({1}, {3})).item()));
  EXPECT_EQ(var(f64({1}, {3}), {}, false, 0).item(), 0);
  EXPECT_TRUE(std::isnan(var(zeros({0})).item()));
  EXPECT_TRUE(std::isnan(var(f64({2}, {1, kNaN})).item()));
  EXPECT_EQ(var(zeros({0, 3}), 1).shape(), (Shape{0}));
}

TEST(VarOp, GradientsPassGradcheck) {
  for (const double correction : {0.0, 1.0}) {
    expect_gradients([=](auto x) { return var(x[0], {0, 2}, false, correction); }, {normal({3, 2, 4}, 1)});
    expect_gradients([=](auto x) { return var(x[0], {}, true, correction); }, {normal({7}, 2)});
    expect_gradients([=](auto x) { return stddev(x[0], 1, false, correction); }, {normal({3, 5}, 3)});
    expect_gradients([=](auto x) { return stddev(x[0], 0, true, correction); }, {normal({3, 5}, 4)});
  }
}

TEST(StdDev, HasAGradientOfZeroWhereItIsZero) {
  expect_close(gradients([](auto x) { return stddev(x[0], 1); }, {f64({2, 2}, {5, 5, 1, 3})}, f64({2}, {1, 1}))[0],
               f64({2, 2}, {0, 0, -std::sqrt(0.5), std::sqrt(0.5)}));
}

TEST(VarOp, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tensor x = normal({60, 1000}, 1, DType::f32);
  expect_same_bits_on_any_threads([](auto x) { return var(x[0]); }, {x});
  expect_same_bits_on_any_threads([](auto x) { return stddev(x[0], 0); }, {x});
}

TEST(VarOp, NamesItselfInErrors) {
  EXPECT_THAT([] { var(normal({2}), 1); }, ThrowsMessage<ShapeError>("var: x [2] has no axis 1"));
  EXPECT_THAT(
      [] {
        stddev(normal({2}), {0, 0});
      },
      ThrowsMessage<ShapeError>("stddev: axis 0 of shape [2] is given twice"));
  EXPECT_THAT([] { stddev(zeros({2}, DType::i32)); },
              ThrowsMessage<DTypeError>("stddev: expected a floating-point tensor but has dtype i32"));
}

}  // namespace
}  // namespace braid::op_tests::var_test

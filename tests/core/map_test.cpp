#include <braid/core/map.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::map_test {
namespace {

constexpr auto kAxpy = [](auto a, auto b) { return a + 2 * b; };

Tensor axpy(const Tensor& a, const Tensor& b) { return map("axpy", kAxpy, a, b); }

void expect_axpy(const Tensor& a, const Tensor& b) {
  const Tensor y = axpy(a, b);
  ASSERT_TRUE(y.is_contiguous());
  const std::vector<double> u = a.broadcast_to(y.shape()).to_vector<double>();
  const std::vector<double> v = b.broadcast_to(y.shape()).to_vector<double>();
  const std::vector<double> values = y.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], u[i] + 2 * v[i]) << to_string(y.shape()) << " at " << i;
}

TEST(Map, ComputesSizesAroundItsBlocks) {
  Rng rng(1);
  for (const std::int64_t n : {0, 1, 2, 1023, 1024, 1025, 8191, 8192, 8193, 20001}) {
    const Tensor a = randn({n}, rng, DType::f64), b = randn({n}, rng, DType::f64);
    expect_axpy(a, b);
    expect_axpy(a, b.slice(0, 0, n == 0 ? 0 : 1));
    expect_axpy(a, randn({n, 2}, rng, DType::f64).select(1, 1));
    expect_axpy(randn({3, n}, rng, DType::f64).transpose(), b.expand_dims(1));
  }
}

TEST(Map, BroadcastsBothWays) {
  Rng rng(2);
  const Tensor column = randn({67, 1}, rng, DType::f64), row = randn({1, 131}, rng, DType::f64);
  EXPECT_EQ(axpy(column, row).shape(), (Shape{67, 131}));
  expect_axpy(column, row);
  expect_axpy(row, column);
  expect_axpy(scalar(2, DType::f64), row);
  expect_axpy(row, randn({5, 1, 131}, rng, DType::f64));
  expect_axpy(zeros({0, 1}, DType::f64), row);
}

TEST(Map, TakesOneToManyInputsOfEitherPrecision) {
  const Tensor x = Tensor::of<float>({2}, {1, 4});
  const auto root = [](auto v) { return std::sqrt(v); };
  EXPECT_THAT(map("sqrt", root, x).to_vector<float>(), testing::ElementsAre(1, 2));
  const auto fma = [](auto a, auto b, auto c) { return a * b + c; };
  EXPECT_THAT(map("fma", fma, x, x, scalar(1)).to_vector<float>(), testing::ElementsAre(2, 17));
  EXPECT_EQ(map("sqrt", root, scalar(2, DType::f64)).item(), std::sqrt(2.0));
  const auto total = [](auto... v) { return (v + ...); };
  EXPECT_EQ(map("total", total, x, x, x, x, x, x, x, x).at({1}), 32);  // 9 throw
}

TEST(Map, OfAnyDtypeTakesIntegers) {
  const Tensor x = Tensor::of<std::int32_t>({3}, {1, -4, 7}), y = map_any("axpy", kAxpy, x, x.slice(0, 1, 2));
  EXPECT_EQ(y.dtype(), DType::i32);
  EXPECT_THAT(y.to_vector<int>(), testing::ElementsAre(-7, -12, -1));
  EXPECT_EQ(map_any("axpy", kAxpy, scalar(0.5), scalar(1)).item(), 2.5);
}

TEST(Map, OfTruthsGivesIntegersForEveryDtype) {
  Rng rng(4);
  const auto positive = [](auto v) { return v > 0; };
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    const Tensor x = randint(-3, 3, {3, 5001}, rng).to(dtype).transpose();
    const Tensor y = map_truth("positive", positive, x);
    EXPECT_EQ(y.dtype(), DType::i32);
    const std::vector<double> values = x.to_vector<double>();
    const std::vector<int> truths = y.to_vector<int>();
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(truths[i], values[i] > 0);
  }
}

TEST(Map, GivesTheSameBitsForAnyNumberOfThreads) {
  Rng rng(3);
  const Tensor a = randn({50, 1001}, rng), b = randn({1001, 50}, rng).transpose();
  const WithThreads one(1);
  const Tensor expected = axpy(a, b);
  for (const int threads : {2, 3}) {
    const WithThreads with_threads(threads);
    EXPECT_TRUE(identical(axpy(a, b), expected));
  }
}

TEST(Map, ErrorsNameTheOp) {
  EXPECT_EQ(message_of([] { axpy(ones({2}), ones({3})); }), "axpy: shapes [2] and [3] do not broadcast");
  EXPECT_EQ(message_of([] { axpy(ones({2}), ones({2}, DType::f64)); }),
            "axpy: inputs must have the same dtype but have f32 and f64");
  EXPECT_EQ(message_of([] { axpy(ones({2}, DType::i32), ones({2}, DType::i32)); }),
            "axpy: expected a floating-point tensor but has dtype i32");
  EXPECT_EQ(message_of([] { axpy(ones({2}), Tensor()); }), "axpy: input 1 is undefined");
}

}  // namespace
}  // namespace braid::map_test

#include <braid/core/reduce.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::reduce_test {
namespace {

/// The elements that a reduction with keep_dims combines, by the index of the result.
std::map<std::vector<std::int64_t>, std::vector<double>> groups(const Tensor& x, const Axes& axes) {
  std::map<std::vector<std::int64_t>, std::vector<double>> result;
  for (auto index : indices(x.shape())) {
    const double value = at(x, index);
    for (int axis = 0; axis < x.rank(); ++axis)
      if (axes.empty() || std::ranges::count(axes, axis) || std::ranges::count(axes, axis - x.rank()))
        index[static_cast<std::size_t>(axis)] = 0;
    result[index].push_back(value);
  }
  return result;
}

void expect_reductions(const Tensor& x, const Axes& axes) {
  const Tensor sum = reduce_sum(x, axes, true), max = reduce_max(x, axes, true), min = reduce_min(x, axes, true);
  for (const auto& [index, values] : groups(x, axes)) {
    double expected = 0;
    for (const double v : values) expected += v;
    EXPECT_NEAR(at(sum, index), expected, 1e-12 * static_cast<double>(values.size()));
    EXPECT_EQ(at(max, index), std::ranges::max(values));
    EXPECT_EQ(at(min, index), std::ranges::min(values));
  }
  EXPECT_EQ(reduce_sum(x, axes).shape(), reduced_shape("sum", x.shape(), axes, false));
  EXPECT_EQ(reduce_sum(x, axes).to_vector<double>(), sum.to_vector<double>());
  EXPECT_EQ(reduce_max(x, axes).to_vector<double>(), max.to_vector<double>());
}

TEST(Reduce, TakesOneAxisAsANumber) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(reduce_sum(x, 0).shape(), Shape{3});
  EXPECT_EQ(reduce_sum(x, -1, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(reduce_sum(x, {}, true).shape(), (Shape{1, 1}));
  EXPECT_FALSE((std::is_convertible_v<bool, Axes>));
}

TEST(Reduce, MatchesNaiveLoopsOverAnyAxes) {
  Rng rng(1);
  const Tensor t = randn({3, 5, 4, 2}, rng, DType::f64);
  for (const Tensor& x : {t, t.permute({2, 0, 3, 1}), t.slice(1, 1, 4), t.slice(0, 0, 1).broadcast_to({3, 5, 4, 2})})
    for (const Axes& axes : {Axes{}, Axes{0}, Axes{3}, Axes{-1}, Axes{1}, Axes{0, 1}, Axes{1, 0}, Axes{2, -1},
                             Axes{0, 2}, Axes{3, 0}, Axes{0, 1, 2, 3}})
      expect_reductions(x, axes);
}

TEST(Reduce, MatchesNaiveLoopsAroundItsBlocks) {
  Rng rng(2);
  for (const auto& shape : {Shape{4095}, Shape{4097}, Shape{20000}, Shape{65, 63}, Shape{129, 65}, Shape{2, 9000}}) {
    const Tensor x = randn(shape, rng, DType::f64);
    for (const Axes& axes : {Axes{0}, Axes{-1}, Axes{}}) expect_reductions(x, axes);
  }
}

TEST(Reduce, MatchesNaiveLoopsOverAxesInTheMiddle) {
  Rng rng(6);
  for (const auto& shape : {Shape{3, 70, 17}, Shape{2, 3, 4, 130}, Shape{5, 1, 64}, Shape{1, 9, 65}, Shape{4, 0, 20}}) {
    const Tensor x = randn(shape, rng, DType::f64);
    for (int axis = 0; axis + 1 < x.rank(); ++axis) {
      const Tensor sum = reduce_sum(x, axis, true);
      for (const auto& [index, values] : groups(x, axis))
        EXPECT_NEAR(at(sum, index), std::accumulate(values.begin(), values.end(), 0.0), 1e-12);
    }
    EXPECT_EQ(reduce_sum(x, {0, 1}).shape(), x.shape().axes(2, x.rank()));
  }
  const Tensor x = randn({2, 3, 4, 130}, rng, DType::f64);
  expect_reductions(x, {1, 2});
  EXPECT_THAT(reduce_sum(zeros({2, 0, 20}), 1).to_vector<float>(), testing::Each(0));
}

TEST(Reduce, OfAScalarIsTheScalar) {
  EXPECT_EQ(reduce_sum(scalar(3)).item(), 3);
  EXPECT_EQ(reduce_max(scalar(3)).rank(), 0);
}

TEST(Reduce, SumsOfNothingAreZero) {
  EXPECT_EQ(reduce_sum(zeros({0})).item(), 0);
  EXPECT_THAT(reduce_sum(zeros({0, 2}), {0}).to_vector<float>(), testing::ElementsAre(0, 0));
  EXPECT_THAT(reduce_sum(zeros({2, 0}), {1}).to_vector<float>(), testing::ElementsAre(0, 0));
  EXPECT_EQ(reduce_sum(zeros({2, 0}), {0}).shape(), Shape{0});
}

TEST(Reduce, ThereIsNoLargestOfNothing) {
  EXPECT_EQ(message_of([] { reduce_max(zeros({2, 0}), {1}); }), "max: shape [2, 0] has no elements to choose from");
  EXPECT_EQ(message_of([] { reduce_min(zeros({0})); }), "min: shape [0] has no elements to choose from");
  EXPECT_EQ(reduce_max(zeros({2, 0}), {0}).shape(), Shape{0});
}

TEST(Reduce, NanWinsOverEveryNumber) {
  for (const auto& values : {std::vector<float>{NAN, 1, 2}, {1, NAN, 2}, {1, 2, NAN}}) {
    const Tensor x = Tensor::of<float>({3}, std::span(values));
    EXPECT_TRUE(std::isnan(reduce_max(x).item()));
    EXPECT_TRUE(std::isnan(reduce_min(x).item()));
  }
}

TEST(Reduce, StaysPreciseForManyFloats) {
  const Tensor x = full({3'000'000}, 0.1);
  EXPECT_NEAR(reduce_sum(x).item(), 300'000, 3);
  EXPECT_NEAR(reduce_sum(x.reshape({1'000'000, 3}), {0}).at({1}), 100'000, 1);
  EXPECT_NEAR(reduce_sum(x.reshape({3, 62'500, 16}), {1}).at({1, 2}), 6250, 0.01);  // groups of rows, in double
}

TEST(Reduce, OfIntegersIsExact) {
  Rng rng(5);
  for (const Shape& shape : {Shape{1}, Shape{5000}, Shape{300, 7}, Shape{4, 65, 3}, Shape{5, 130, 70}}) {
    const Tensor x = randint(-2147483648, 2147483648, shape, rng);
    for (const Axes& axes : {Axes{}, Axes{0}, Axes{-1}}) {
      const Tensor wide = x.to(DType::f64), small = randint(-400'000, 400'000, shape, rng);
      EXPECT_TRUE(identical(reduce_max(x, axes).to(DType::f64), reduce_max(wide, axes)));
      EXPECT_TRUE(identical(reduce_min(x, axes).to(DType::f64), reduce_min(wide, axes)));
      EXPECT_TRUE(identical(reduce_sum(small, axes).to(DType::f64), reduce_sum(small.to(DType::f64), axes)));
    }
  }
  // Sums on the way may be of any size.
  EXPECT_EQ(reduce_sum(Tensor::of<std::int32_t>({4}, {2147483647, 2147483647, -2147483647, -2147483647})).item(), 0);
  EXPECT_EQ(reduce_sum(zeros({0}, DType::i32)).item(), 0);
}

TEST(Reduce, GivesTheSameBitsForAnyNumberOfThreads) {
  Rng rng(3);
  const Tensor x = randn({300, 257}, rng);
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}}) {
    const WithThreads one(1);
    const Tensor expected = reduce_sum(x, axes);
    for (const int threads : {2, 3}) {
      const WithThreads with_threads(threads);
      EXPECT_TRUE(identical(reduce_sum(x, axes), expected));
    }
  }
}

TEST(Reduce, SumToIsTheVjpOfBroadcasting) {
  Rng rng(4);
  const Tensor x = randn({2, 3, 4}, rng, DType::f64);
  for (const Shape& shape :
       {Shape{2, 3, 4}, Shape{3, 4}, Shape{4}, Shape{}, Shape{1, 1, 1}, Shape{2, 1, 4}, Shape{3, 1}}) {
    const Tensor y = sum_to(x, shape), dy = randn(shape, rng, DType::f64);
    EXPECT_EQ(y.shape(), shape);
    // <sum_to(x), dy> = <x, broadcast(dy)>
    const std::vector<double> a = y.to_vector<double>(), b = dy.to_vector<double>(), c = x.to_vector<double>(),
                              d = dy.broadcast_to(x.shape()).to_vector<double>();
    EXPECT_NEAR(std::inner_product(a.begin(), a.end(), b.begin(), 0.0),
                std::inner_product(c.begin(), c.end(), d.begin(), 0.0), 1e-12);
  }
  EXPECT_THAT(sum_to(zeros({0, 2}), {2}).to_vector<float>(), testing::ElementsAre(0, 0));
}

TEST(Reduce, ErrorsNameTheOp) {
  EXPECT_EQ(message_of([] { reduce_sum(ones({2, 3}), {1, -1}); }), "sum: axis -1 of shape [2, 3] is given twice");
  EXPECT_EQ(message_of([] { reduce_max(ones({2, 3}), {2}); }), "max: x [2, 3] has no axis 2");
  EXPECT_EQ(message_of([] { reduce_sum(ones({2, 3}), 2, false, "mean"); }), "mean: x [2, 3] has no axis 2");
  EXPECT_EQ(message_of([] { reduce_sum(full({2}, 2147483647, DType::i32)); }),
            "sum: the sum 4294967294 does not fit i32");
  EXPECT_EQ(message_of([] {
              reduce_sum(full({2, 2}, -2147483647, DType::i32), 0, false, "total");
            }),
            "total: the sum -4294967294 does not fit i32");
}

}  // namespace
}  // namespace braid::reduce_test

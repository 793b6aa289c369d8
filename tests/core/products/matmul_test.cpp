#include <braid/core/products/matmul.h>

#include <gtest/gtest.h>

#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::matmul_test {
namespace {

/// a [..., m, k], b [..., k, n] by three loops.
void expect_product(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  const Tensor c = matrix_product(a, b);
  const Shape lead = broadcast_shapes("test", a.shape().axes(0, a.rank() - 2), b.shape().axes(0, b.rank() - 2));
  ASSERT_EQ(c.shape(), lead.concat({a.size(-2), b.size(-1)}));
  const Tensor x = a.broadcast_to(lead.concat({a.size(-2), a.size(-1)}));
  const Tensor y = b.broadcast_to(lead.concat({b.size(-2), b.size(-1)}));
  for (const auto& index : indices(c.shape())) {
    auto of_x = index, of_y = index;
    double expected = 0;
    for (std::int64_t p = 0; p < a.size(-1); ++p) {
      of_x.back() = p;
      of_y[of_y.size() - 2] = p;
      expected += at(x, of_x) * at(y, of_y);
    }
    ASSERT_NEAR(at(c, index), expected, tolerance) << to_string(a.shape()) << " times " << to_string(b.shape());
  }
}

/// The same matrix in every layout that a caller may have.
std::vector<Tensor> layouts(const Tensor& t) {
  Tensor padded = zeros({t.size(0) + 2, t.size(1) + 3}, t.dtype());
  dispatch_float("test", t.dtype(), [&](auto zero) {
    for (const auto& i : indices(t.shape()))
      padded.mutable_data<decltype(zero)>()[(i[0] + 1) * (t.size(1) + 3) + i[1] + 2] =
          static_cast<decltype(zero)>(at(t, i));
  });
  const Tensor stepped = t.expand_dims(2).broadcast_to({t.size(0), t.size(1), 2}).clone().select(2, 1);
  return {t, t.transpose().clone().transpose(), padded.slice(0, 1, t.size(0) + 1).slice(1, 2, t.size(1) + 2), stepped};
}

TEST(Matmul, MatchesNaiveLoopsInEveryLayout) {
  Rng rng(1);
  for (const auto& [m, n, k] : {std::array{1, 1, 1}, {1, 5, 3}, {5, 1, 3}, {3, 5, 1}, {1, 1, 7}, {4, 8, 4}, {5, 7, 9}})
    for (const DType dtype : {DType::f64, DType::f32})
      for (const Tensor& a : layouts(randn({m, k}, rng, dtype)))
        for (const Tensor& b : layouts(randn({k, n}, rng, dtype)))
          expect_product(a, b, dtype == DType::f64 ? 1e-12 : 1e-5);
}

TEST(Matmul, BroadcastsLeadingAxes) {
  Rng rng(2);
  const auto random = [&](const Shape& shape) { return randn(shape, rng, DType::f64); };
  expect_product(random({4, 2, 3}), random({4, 3, 5}));
  expect_product(random({4, 2, 3}), random({3, 5}));
  expect_product(random({2, 3}), random({4, 3, 5}));
  expect_product(random({2, 1, 2, 3}), random({3, 3, 5}));
  expect_product(random({1, 2, 3}), random({1, 3, 5}));
  expect_product(random({2, 3, 2, 3}).transpose(0, 1), random({3, 5}));
  expect_product(random({4, 3, 2}).transpose(), random({4, 5, 3}).transpose());
  expect_product(random({2, 4, 3, 5}).transpose(1, 2), random({2, 4, 3, 5}).permute({0, 2, 3, 1}));
}

TEST(Matmul, ReadsStrideZeroOperands) {
  Rng rng(3);
  const Tensor row = randn({1, 4}, rng, DType::f64), column = randn({4, 1}, rng, DType::f64);
  expect_product(row.broadcast_to({3, 4}), column.broadcast_to({4, 5}));
  expect_product(column.broadcast_to({4, 4}).transpose(), row.broadcast_to({4, 4}));
  expect_product(scalar(2, DType::f64).broadcast_to({3, 4}), column);
}

TEST(Matmul, HasTheSameBitsForAColumnWhicheverStridesItHas) {
  Rng rng(5);
  const Tensor rows = randn({64, 600}, rng), column = randn({600, 1}, rng);
  EXPECT_TRUE(identical(matrix_product(rows, column.reshape({1, 600}).transpose()), matrix_product(rows, column)));
}

TEST(Matmul, HandlesSizesOfZero) {
  const auto none = [](const Shape& shape) { return zeros(shape, DType::f64); };
  expect_product(none({0, 3}), none({3, 2}));
  expect_product(none({3, 2}), none({2, 0}));
  expect_product(none({3, 0}), none({0, 2}));
  expect_product(none({4, 3, 0}), none({0, 2}));  // zeros, by the tall product
  expect_product(none({4, 3, 0}), none({4, 0, 2}));
  expect_product(none({0, 3, 2}), none({2, 2}));
  expect_product(none({4, 3, 2}), none({2, 0}));
  expect_product(none({0, 3, 2}), none({1, 2, 2}));
}

TEST(Matmul, AccumulatesIntoAnUnsharedTensor) {
  const Tensor a = Tensor::of<double>({1, 2}, {1, 2}), b = Tensor::of<double>({2, 1}, {3, 4});
  Tensor c = full({1, 1}, 100, DType::f64);
  accumulate_product(a, b, c);
  EXPECT_EQ(c.item(), 111);
  Tensor batch = ones({3, 2, 2}, DType::f64);
  accumulate_product(ones({3, 2, 0}, DType::f64), ones({0, 2}, DType::f64), batch);
  EXPECT_TRUE(identical(batch, ones({3, 2, 2}, DType::f64)));
  const Tensor other = c;
  EXPECT_THROW(accumulate_product(a, b, c), Error);
}

TEST(Matmul, GivesTheSameBitsForAnyNumberOfThreads) {
  Rng rng(4);
  const Tensor a = randn({3, 70, 130}, rng), b = randn({130, 190}, rng), c = randn({3, 190, 130}, rng).transpose();
  const WithThreads one(1);
  const Tensor tall = matrix_product(a, b), batched = matrix_product(a, c);
  for (const int threads : {2, 3}) {
    const WithThreads with_threads(threads);
    EXPECT_TRUE(identical(matrix_product(a, b), tall));
    EXPECT_TRUE(identical(matrix_product(a, c), batched));
  }
}

TEST(Matmul, ErrorsNameTheShapes) {
  EXPECT_EQ(message_of([] {
              matrix_product(ones({3}), ones({3, 2}));
            }),
            "matmul: inputs must have at least 2 axes but have shapes [3] and [3, 2]");
  EXPECT_EQ(message_of([] {
              matrix_product(ones({2, 3}), ones({4, 5}));
            }),
            "matmul: the last axis of [2, 3] does not match the second-last axis of [4, 5]");
  EXPECT_EQ(message_of([] {
              matrix_product(ones({2, 2, 3}), ones({3, 3, 2}));
            }),
            "matmul: shapes [2] and [3] do not broadcast");
  EXPECT_EQ(message_of([] {
              matrix_product(ones({2, 2}), ones({2, 2}, DType::f64));
            }),
            "matmul: inputs must have the same dtype but have f32 and f64");
  for (const std::int64_t n : {0, 2})
    EXPECT_EQ(message_of([n] {
                matrix_product(ones({n, 2}, DType::i32), ones({2, 2}, DType::i32));
              }),
              "matmul: expected a floating-point tensor but has dtype i32");
  Tensor c = ones({3, 2});
  EXPECT_EQ(message_of([&] {
              accumulate_product(ones({2, 2}), ones({2, 2}), c);
            }),
            "matmul: c must be contiguous with shape [2, 2] but has [3, 2]");
}

}  // namespace
}  // namespace braid::matmul_test

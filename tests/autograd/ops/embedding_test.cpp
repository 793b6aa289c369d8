#include <braid/autograd/ops/embedding.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>

namespace braid::embedding_test {
namespace {

using testing::ElementsAre;

TEST(Embedding, TakesRows) {
  const Tensor weight = Tensor::of<float>({3, 2}, {0, 1, 10, 11, 20, 21});
  const Tensor y = embedding(weight, Tensor::of<std::int32_t>({2, 2}, {2, 0, 1, 2})).value();
  EXPECT_EQ(y.shape(), Shape({2, 2, 2}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(20, 21, 0, 1, 10, 11, 20, 21));
}

TEST(Embedding, AddsTheCotangentsOfEqualIds) {
  const Tensor ids = Tensor::of<std::int32_t>({3}, {2, 0, 2});
  const auto [dweight] = vjp([&](const Var& w) { return embedding(w, ids); },
                             Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}), zeros({3, 2}));
  EXPECT_THAT(dweight.to_vector<float>(), ElementsAre(3, 4, 0, 0, 6, 8));
}

TEST(Embedding, GradientsPassGradcheckOnWideTablesAndNoIds) {
  Rng rng(3);
  for (const std::int64_t count : {0, 1, 150}) {
    const Tensor ids = randint(0, 7, {count}, rng);
    const auto result =
        gradcheck([&](std::span<const Var> v) { return embedding(v[0], ids); }, {randn({7, 65}, rng, DType::f64)});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

template <class E>
void expect_error(const Var& weight, const Tensor& ids, const char* message) {
  try {
    embedding(weight, ids);
    FAIL() << "expected: " << message;
  } catch (const E& error) {
    EXPECT_STREQ(error.what(), message);
  }
}

TEST(Embedding, RejectsBadTablesAndIds) {
  const Tensor ids = Tensor::of<std::int32_t>({2}, {0, 3});
  expect_error<ValueError>(zeros({3, 2}), ids, "embedding: ids must lie in [0, 3) but the one at [1] is 3");
  expect_error<ShapeError>(zeros({3}), ids, "embedding: weight must have shape [V, C] but has [3]");
  expect_error<DTypeError>(zeros({3, 2}), zeros({2}), "embedding: ids must have dtype i32 but have f32");
}

}  // namespace
}  // namespace braid::embedding_test

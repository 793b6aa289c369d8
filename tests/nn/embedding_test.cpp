#include <braid/nn/embedding.h>

#include <gtest/gtest.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::embedding_test {
namespace {

TEST(Embedding, PicksARowForEachId) {
  Rng rng(1);
  const Embedding layer(5, 2, rng);
  const Tensor y = layer(Tensor::of<std::int32_t>({2, 2}, {4, 0, 0, 3})).value();
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_TRUE(identical(y.select(0, 0).select(0, 0).clone(), layer.weight.value().select(0, 4).clone()));
  EXPECT_TRUE(identical(y.select(0, 1).select(0, 1).clone(), layer.weight.value().select(0, 3).clone()));
}

TEST(Embedding, NamesItsParameterAndTrainsIt) {
  Rng rng(2);
  const Embedding layer(5, 3, rng, DType::f64);
  EXPECT_THAT(parameter_names(layer), testing::ElementsAre("weight"));
  const Tensor ids = Tensor::of<std::int32_t>({4}, {1, 1, 0, 4});
  expect_gradients(layer, [&](const Embedding& m) { return m(ids); });
}

TEST(Embedding, LeavesTheRowOfPaddingAsItIs) {
  Rng rng(3);
  Embedding layer(4, 2, rng, DType::f64);
  const Tensor ids = Tensor::of<std::int32_t>({2, 2}, {1, 1, 3, 1}), before = layer(ids).value();
  layer.padding = 3;
  EXPECT_TRUE(identical(layer(ids).value(), before));
  const auto [loss, grads] = value_and_grad([&](const Embedding& m) { return sum(m(ids)); })(layer);
  EXPECT_EQ(grads.weight.value().to_vector<double>(), (std::vector<double>{0, 0, 3, 3, 0, 0, 0, 0}));
}

TEST(Embedding, RejectsEmptySizes) {
  Rng rng;
  expect_error<ValueError>([&] { Embedding(3, 0, rng); },
                           "Embedding: count and channels must be at least 1 but are 3 and 0");
}

}  // namespace
}  // namespace braid::nn::embedding_test

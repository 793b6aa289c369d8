#include <braid/nn/summary.h>

#include <gtest/gtest.h>

#include <braid/nn/linear.h>
#include <braid/nn/sequential.h>
#include <braid/nn/transformer.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::summary_test {
namespace {

TEST(Summary, ListsNamesShapesCountsAndTheTotal) {
  Rng rng;
  EXPECT_EQ(summary(Sequential(Linear(50, 1200, rng), Linear(1200, 1, rng, {.bias = false}))),
            "parameter  shape        count\n"
            "0.weight   [1200, 50]  60,000\n"
            "0.bias     [1200]       1,200\n"
            "1.weight   [1, 1200]    1,200\n"
            "total                  62,400\n");
}

TEST(Summary, MarksParametersThatAFunctionDoesNotUse) {
  Rng rng;
  const Sequential layers(Linear(2, 3, rng), Linear(3, 1, rng));
  EXPECT_EQ(summary(
                layers, [](const auto& m, const Tensor& x) { return std::get<0>(m.layers)(x); }, ones({4, 2})),
            "parameter  shape   count\n"
            "0.weight   [3, 2]      6\n"
            "0.bias     [3]         3\n"
            "1.weight   [1, 3]      3  not used\n"
            "1.bias     [1]         1  not used\n"
            "total                 13\n");
}

TEST(Summary, SaysHowManyParametersATokenPasses) {
  Rng rng;
  const Experts experts(4, 3, rng, {.experts = 5, .top = 2});
  const std::string text = summary(experts);
  EXPECT_TRUE(text.ends_with("total                            200\nof a token                        92\n"))
      << text;  // 20 + 2 * 36
  const Transformer<> model({.vocab = 8, .channels = 4, .layers = 3, .heads = 1, .experts = ExpertsSettings{}}, rng);
  EXPECT_EQ(num_idle_params(model), 3 * 6 * num_params(std::get<Experts>(model.blocks[0].mlp.body.layer).experts[0]));
  EXPECT_EQ(num_idle_params(Linear(2, 2, rng)), 0);
}

}  // namespace
}  // namespace braid::nn::summary_test

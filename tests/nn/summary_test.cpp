#include <braid/nn/summary.h>

#include <gtest/gtest.h>

#include <braid/nn/linear.h>
#include <braid/nn/sequential.h>

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

}  // namespace
}  // namespace braid::nn::summary_test

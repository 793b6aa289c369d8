#include <braid/nn/convert.h>

#include <gtest/gtest.h>

#include <braid/nn/linear.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::convert_test {
namespace {

TEST(ToDtype, ConvertsEveryParameterOfACopy) {
  Rng rng(1);
  const Linear layer(3, 2, rng);
  const Linear wide = to_dtype(layer, DType::f64);
  EXPECT_EQ(wide.weight.dtype(), DType::f64);
  EXPECT_EQ(wide.bias.dtype(), DType::f64);
  EXPECT_EQ(layer.weight.dtype(), DType::f32);
  EXPECT_TRUE(identical(to_dtype(wide, DType::f32).weight.value(), layer.weight.value()));
}

struct Scaled {
  Var weight = ones({2});
  Buffer mean{full({2}, 0.1)}, ids{arange(2, DType::i32)}, unset;
  void params(auto&& visit) { visit("weight", weight), visit("mean", mean), visit("ids", ids), visit("unset", unset); }
};

TEST(ToDtype, ConvertsBuffersThatAreNotIntegers) {
  const Scaled narrow;
  const Scaled wide = to_dtype(narrow, DType::f64);
  EXPECT_TRUE(identical(wide.mean.value, narrow.mean.value.to(DType::f64)));
  EXPECT_TRUE(identical(wide.ids.value, narrow.ids.value));
  EXPECT_FALSE(wide.unset.value.defined());
  EXPECT_EQ(narrow.mean.value.dtype(), DType::f32);
}

}  // namespace
}  // namespace braid::nn::convert_test

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

}  // namespace
}  // namespace braid::nn::convert_test

#include <braid/nn/optim/schedule.h>

#include <gtest/gtest.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::schedule_test {
namespace {

TEST(Schedule, StaysConstant) {
  const Schedule lr = constant_lr(0.3);
  EXPECT_EQ(lr(0), 0.3);
  EXPECT_EQ(lr(1000000), 0.3);
}

TEST(Schedule, WarmsUpThenFallsAlongACosine) {
  const Schedule lr = warmup_cosine({.peak = 1, .floor = 0.2, .warmup = 4, .total = 14});
  EXPECT_DOUBLE_EQ(lr(0), 0.25);
  EXPECT_DOUBLE_EQ(lr(3), 1);
  EXPECT_DOUBLE_EQ(lr(4), 1);
  EXPECT_DOUBLE_EQ(lr(9), 0.6);  // half way
  EXPECT_DOUBLE_EQ(lr(14), 0.2);
  EXPECT_DOUBLE_EQ(lr(99), 0.2);
  for (int step = 4; step < 14; ++step) EXPECT_GT(lr(step), lr(step + 1));
}

TEST(Schedule, MayHaveNoWarmUpOrNothingElse) {
  EXPECT_DOUBLE_EQ(warmup_cosine({.peak = 1, .total = 10})(0), 1);
  EXPECT_NEAR(warmup_cosine({})(500), 0.5e-3, 1e-15);  // half of 1000 steps, from 1e-3 to 0
  EXPECT_DOUBLE_EQ(warmup_cosine({.peak = 1, .warmup = 2, .total = 2})(1), 1);
  EXPECT_DOUBLE_EQ(warmup_cosine({.peak = 1, .warmup = 2, .total = 2})(2), 0);
}

TEST(Schedule, RejectsBadSettings) {
  expect_error<ValueError>([] { constant_lr(-1); }, "constant_lr: lr must be at least 0 but is -1");
  expect_error<ValueError>([] { warmup_cosine({.warmup = 5, .total = 4}); },
                           "warmup_cosine: warmup must be in [0, total = 4] but is 5");
  expect_error<ValueError>([] { warmup_cosine({.peak = 1, .floor = 2}); },
                           "warmup_cosine: floor must be in [0, peak = 1] but is 2");
  EXPECT_EQ(warmup_cosine({.peak = 1, .floor = 1, .total = 4})(3), 1);
}

}  // namespace
}  // namespace braid::nn::schedule_test

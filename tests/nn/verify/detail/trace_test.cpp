#include <braid/nn/verify/detail/mismatch.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>

namespace braid::nn::detail::trace_test {
namespace {

TEST(Trace, KeepsValuesAndCotangents) {
  braid::detail::Recording recording;
  Tape tape(&recording);
  const Var a = tape.watch(scalar(3)), b = a * a;
  tape.backward(b + b * 2.0);
  const Trace trace(recording);
  const std::vector<TracedValue>& values = trace.values;
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(trace.ops, 3u);
  EXPECT_EQ(values[0].op, "");
  EXPECT_EQ(values[1].op, "mul");
  EXPECT_EQ(values[1].number, 1u);
  EXPECT_EQ(values[1].value.item(), 9);
  EXPECT_EQ(values[1].cotangent.item(), 3);
  EXPECT_EQ(values[2].users.size(), 1u);
  EXPECT_THAT(values[0].users, testing::ElementsAre("'mul' (#1)", "'mul' (#1)"));
}

TEST(Trace, MarksCotangentsThatAreLeftToTheMaker) {
  braid::detail::Recording recording;
  Tape tape(&recording);
  const Var a = tape.watch(scalar(3));
  const auto half = [](std::span<Tensor> dys, const Needs&) { return std::vector<Tensor>{dys[0]}; };
  const std::vector<Var> made = record("make", {scalar(1), scalar(2), scalar(4)}, std::vector{a}, half);
  const auto owed = [](std::span<Tensor> dys, const Needs&) { return std::vector<Tensor>{dys[0], {}, dys[0]}; };
  const std::vector<Var> y = record("write", {scalar(7)}, made, owed, Deferral{.input = 0, .output = 0});
  tape.backward(y.front());
  const Trace trace(recording);
  EXPECT_TRUE(trace.values[1].deferred);
  EXPECT_TRUE(trace.values[2].deferred);
  EXPECT_FALSE(trace.values[3].deferred);
  EXPECT_FALSE(trace.values[4].deferred);
}

}  // namespace
}  // namespace braid::nn::detail::trace_test

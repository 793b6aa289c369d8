#include <braid/autograd/format.h>

#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace braid::format_test {
namespace {

TEST(FormatVar, PrintsAConstantAsItsTensor) {
  const Tensor t = Tensor::of<double>({2}, {1, -0.25});
  EXPECT_EQ(fmt::format("{}", Var(t)), "[ 1.   -0.25] f64");
  EXPECT_EQ(to_string(Var(t), {.precision = 1}), to_string(t, {.precision = 1}));
  EXPECT_EQ(fmt::format("{:>12}", Var(scalar(2))), "      2. f32");
  EXPECT_EQ(to_string(Var()), "undefined");
}

TEST(FormatVar, TellsWhatIsOnATape) {
  Tape tape;
  std::ostringstream out;
  out << tape.watch(ones({2}));
  EXPECT_EQ(out.str(), "[1. 1.] f32, on a tape");
}

}  // namespace
}  // namespace braid::format_test

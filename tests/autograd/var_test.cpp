#include <type_traits>

#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/tape.h>
#include <tests/support.h>

namespace braid::var_test {
namespace {

static_assert(std::is_copy_assignable_v<Var> && !std::is_assignable_v<Var, Var>);  // not x[0] = y

Tensor vector(std::initializer_list<double> values) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(Var, IsWrittenInPlaceOffTheTapeOnly) {
  Tape tape;
  Var constant = vector({1}), watched = tape.watch(vector({1}));
  constant.mutable_value().mutable_data<double>()[0] = 5;
  EXPECT_EQ(constant.item(), 5);
  EXPECT_EQ(message_of([&] { watched.mutable_value(); }), "Var::mutable_value: this variable is on a tape");
}

TEST(Var, ConstantsConvertToTensors) {
  const Var x = vector({1, 2});
  const Tensor t = x;
  EXPECT_EQ(t.bytes(), x.value().bytes());
  EXPECT_FALSE(Tensor(Var()).defined());
  const std::vector<Tensor> list{x, -x, vector({3})};
  EXPECT_EQ(list[1].at({1}), -2);
}

TEST(Var, OnATapeDoesNotTurnIntoATensor) {
  Tape tape;
  const Var x = tape.watch(ones({2, 3}));
  EXPECT_EQ(message_of([&] { const Tensor t = x * 2; }),
            "Var: this [2, 3] variable is on a tape, but a Tensor has no gradient; write detach(x) or x.value()");
  EXPECT_TRUE(identical(detach(x), x.value()));
}

}  // namespace
}  // namespace braid::var_test

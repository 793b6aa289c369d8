#include <type_traits>

#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/verify/gradcheck.h>
#include <tests/support.h>

namespace braid::var_test {
namespace {

static_assert(std::is_copy_assignable_v<Var> && !std::is_assignable_v<Var, Var>);  // not x[0] = y
template <class X>
concept Assignable = requires(X x) { x[0] += 1.0; };
static_assert(!Assignable<Var> && !Assignable<Tensor>);

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

/// Every member of Tensor that Var has and every free function for it, in code that does not know which of them x is.
template <class X>
X everything(const X& x) {  // [2, 3]
  EXPECT_TRUE(x.defined() && x.rank() == 2 && x.numel() == 6 && x.size(-1) == 3 && x.dtype() == DType::f64);
  EXPECT_EQ(x.template to_vector<float>().at(1), static_cast<float>(x.at({0, 1})));
  EXPECT_EQ(x[0][1].item(), x.at({0, -2}));
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  const std::vector<std::int64_t> sizes{3, -1};
  const std::vector<int> axes{1, 0};
  X members = x.transpose().permute({1, 0}).permute(axes).reshape({3, 2}).reshape(sizes).reshape(Shape{2, 3});
  members = members.slice(1, 0, 2).select(0, -1).expand_dims(0).broadcast_to({2, 2}).expand_dims(-1).squeeze(2);
  X free = permute(permute(transpose(x), {1, 0}), axes);
  free = reshape(reshape(reshape(free, {3, 2}), sizes), Shape{2, 3});
  free = squeeze(expand_dims(broadcast_to(expand_dims(select(slice(free, 1, 0, 2), 0, -1), 0), {2, 2}), -1), 2);
  EXPECT_TRUE(identical(detach(members), detach(free)));
  members += free;
  members *= 2;
  members -= 1.0;
  members /= x[0][0];
  const Tensor mask = (members > 0.5) * (free <= members) + (0.1 != members) * (members == members);
  return X(where(mask, members, 0.0) + cast(x.to(DType::f32), DType::f64).slice(1, 0, 2) - sum(x, 1, true));
}

TEST(Var, HasTheInterfaceOfTensor) {
  Tape tape;
  const Tensor t = Tensor::of<double>({2, 3}, {1, -2, 3, 4, 5, -6});
  const Var x = tape.watch(t), y = everything(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(identical(y.value(), everything(t)));
}

TEST(Var, PassesGradientsThroughItsMembers) {
  const auto f = [](std::span<const Var> x) {
    return x[0].transpose()
               .permute({1, 0})
               .reshape({3, 2})
               .slice(0, 0, 3, 2)
               .select(1, -1)
               .expand_dims(0)
               .squeeze(0)
               .broadcast_to({4, 2})
               .to(DType::f64) *
           x[0][1].slice(0, 0, 2);
  };
  EXPECT_TRUE(gradcheck(f, {Tensor::of<double>({2, 3}, {1, -2, 3, 4, 5, -6})}, {.order = 2}));
}

TEST(Var, LetsTheValueOfATemporaryOutliveIt) {
  static_assert(std::is_same_v<decltype(std::declval<Var>().value()), Tensor>);
  static_assert(std::is_same_v<decltype(std::declval<const Var&>().value()), const Tensor&>);
  const Var f = vector({1, 2});
  const Tensor& t = (f * 2.0).value();
  const Shape& shape = (f * 2.0).shape();
  EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{2, 4}));
  EXPECT_TRUE(t.unshared());
  EXPECT_EQ(shape, Shape{2});
  EXPECT_EQ(Var(f).value().bytes(), f.value().bytes());  // without a copy
}

}  // namespace
}  // namespace braid::var_test

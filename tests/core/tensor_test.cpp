#include <braid/core/tensor.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/support.h>

namespace braid::tensor_test {
namespace {

using testing::ElementsAre;

TEST(Tensor, HoldsItsElementsRowMajor) {
  const Tensor t = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
  EXPECT_EQ(t.dtype(), DType::f32);
  EXPECT_EQ(t.numel(), 6);
  EXPECT_EQ(t.at({1, 0}), 4);
  EXPECT_EQ(t.at({-1, -1}), 6);
  EXPECT_EQ(t.at({-2, -3}), 1);
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Tensor, FactoriesFillEveryDtype) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32}) {
    EXPECT_THAT(zeros({2}, dtype).to_vector<double>(), ElementsAre(0, 0));
    EXPECT_THAT(ones({2}, dtype).to_vector<double>(), ElementsAre(1, 1));
    EXPECT_THAT(full({2}, 7, dtype).to_vector<double>(), ElementsAre(7, 7));
    EXPECT_THAT(arange(3, dtype).to_vector<double>(), ElementsAre(0, 1, 2));
    EXPECT_THAT(eye(2, dtype).to_vector<double>(), ElementsAre(1, 0, 0, 1));
    EXPECT_EQ(scalar(3, dtype).item(), 3);
    EXPECT_EQ(scalar(3, dtype).rank(), 0);
  }
}

TEST(Tensor, MayHaveNoElements) {
  const Tensor t({0, 3}, DType::f32);
  EXPECT_TRUE(t.defined());
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.numel(), 0);
  EXPECT_TRUE(t.to_vector<float>().empty());
  EXPECT_TRUE(t.transpose().is_contiguous());
  EXPECT_EQ(t.transpose().clone().shape(), (Shape{3, 0}));
  EXPECT_EQ(arange(0).numel(), 0);
  EXPECT_EQ(eye(0).shape(), (Shape{0, 0}));
}

TEST(Tensor, CopiesShareTheStorage) {
  const Tensor t = ones({3});
  EXPECT_TRUE(t.unshared());
  const Tensor copy = t;
  EXPECT_FALSE(t.unshared());
  EXPECT_EQ(copy.data<float>(), t.data<float>());
}

TEST(Tensor, RefusesToWriteToSharedStorage) {
  Tensor t = ones({3});
  t.mutable_data<float>()[0] = 2;
  {
    const Tensor view = t.slice(0, 0, 1);
    EXPECT_EQ(message_of([&] { t.mutable_data<float>(); }),
              "Tensor::mutable_data: the storage of this [3] tensor is shared; write to a clone()");
    EXPECT_THROW(t.mutable_bytes(), Error);
    Tensor own = t.clone();
    own.mutable_data<float>()[1] = 5;
    EXPECT_EQ(view.item(), 2);
  }
  t.mutable_data<float>()[1] = 3;
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(2, 3, 1));
}

TEST(Tensor, RefusesToWriteWhereElementsShareMemory) {
  Tensor t = ones({1, 2}).broadcast_to({1000, 2});  // no other tensor shares the storage
  EXPECT_TRUE(t.unshared());
  EXPECT_EQ(message_of([&] { t.mutable_data<float>(); }),
            "Tensor::mutable_data: this [1000, 2] tensor is broadcast along axis 0; write to a clone()");
  EXPECT_THROW(t.mutable_bytes(), Error);
  t = ones({3}).broadcast_to({1, 3});
  t.mutable_data<float>()[2] = 5;
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(1, 1, 5));
  t = zeros({1, 0}).broadcast_to({7, 0});
  t.mutable_data<float>();
}

TEST(Tensor, ConvertsEveryNumberToIntegers) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  const Tensor x = Tensor::of<float>({9}, {nan, -nan, inf, -inf, 3e9F, -3e9F, 2147483648.0F, -2147483648.0F, -1.9F});
  const auto expected = ElementsAre(0, 0, most, least, most, least, most, least, -1);
  EXPECT_THAT(x.to(DType::i32).to_vector<std::int32_t>(), expected);
  EXPECT_THAT(x.to(DType::f64).to_vector<std::int32_t>(), expected);
  const Tensor edges = Tensor::of<double>({4}, {2147483647.9, 2147483647, -2147483648.9, 1e300});
  EXPECT_THAT(edges.to(DType::i32).to_vector<std::int32_t>(), ElementsAre(most, most, least, most));
  EXPECT_EQ(edges.to(DType::f32).at({3}), inf);
}

TEST(Tensor, FactoriesRefuseWhatTheTypeDoesNotHold) {
  EXPECT_EQ(message_of([] { full({2}, 2147483648.0, DType::i32); }),
            "full: value must be an integer that fits i32 but is 2147483648");
  EXPECT_EQ(message_of([] { scalar(std::nan(""), DType::i32); }),
            "scalar: value must be an integer that fits i32 but is nan");
  EXPECT_EQ(message_of([] { scalar(0.5, DType::i32, "add"); }),
            "add: value must be an integer that fits i32 but is 0.5");
  EXPECT_EQ(full({}, -2147483648.0, DType::i32).item(), -2147483648.0);
  EXPECT_EQ(full({}, 2147483647, DType::i32).item(), 2147483647);
  EXPECT_EQ(message_of([] { arange(16777218); }), "arange: n must be at most 16777217 for f32 but is 16777218");
  EXPECT_EQ(message_of([] { arange(2147483649, DType::i32); }),
            "arange: n must be at most 2147483648 for i32 but is 2147483649");
  EXPECT_EQ(message_of([] { arange(9007199254740994, DType::f64); }),
            "arange: n must be at most 9007199254740993 for f64 but is 9007199254740994");
  EXPECT_EQ(arange(16777217).at({-1}), 16777216);
}

TEST(Tensor, ChecksTheElementType) {
  Tensor t = ones({3});
  EXPECT_EQ(message_of([&] { t.data<double>(); }), "Tensor::data: asked for f64 but the tensor is f32");
  EXPECT_THROW(t.mutable_data<std::int32_t>(), DTypeError);
}

TEST(Tensor, ChecksWhatItIsAskedFor) {
  const Tensor t = ones({2, 3});
  EXPECT_EQ(message_of([&] { t.item(); }), "Tensor::item: expected one element but the shape is [2, 3]");
  EXPECT_EQ(message_of([&] { t.at({1}); }), "Tensor::at: expected 2 indices for shape [2, 3] but got 1");
  EXPECT_EQ(message_of([&] { t.at({1, -4}); }), "Tensor::at: shape [2, 3] has no element [1, -4]");
  EXPECT_EQ(message_of([&] { t.at({2, 0}); }), "Tensor::at: shape [2, 3] has no element [2, 0]");
  EXPECT_EQ(message_of([&] { t.size(2); }), "size: x [2, 3] has no axis 2");
  EXPECT_EQ(message_of([] { arange(-1); }), "arange: n must not be negative but is -1");
  EXPECT_EQ(message_of([] { eye(-1); }), "eye: n must not be negative but is -1");
  EXPECT_EQ(message_of([] {
              Tensor::of<float>({2, 2}, {1, 2, 3});
            }),
            "Tensor::of: shape [2, 2] needs 4 values but has 3");
}

TEST(Tensor, UndefinedTensorsSayThatTheyAre) {
  Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_EQ(t.numel(), 0);
  EXPECT_EQ(message_of([&] { t.data<float>(); }), "Tensor::data: the tensor is undefined");
  EXPECT_EQ(message_of([&] { t.clone(); }), "Tensor::data: the tensor is undefined");
  EXPECT_EQ(message_of([&] { t.mutable_data<float>(); }), "Tensor::mutable_data: the tensor is undefined");
  EXPECT_FALSE(t.contiguous().defined());
  for (const auto& view : std::vector<std::function<Tensor()>>{
           [&] { return t.permute(std::span<const int>()); }, [&] { return t.transpose(); },
           [&] { return t.slice(0, 0, 1); }, [&] { return t.select(0, 0); }, [&] { return t.broadcast_to({2}); },
           [&] { return t.expand_dims(0); }, [&] { return t.squeeze(0); }, [&] { return t.reshape({1}); },
           [&] { return t.reshape(Shape{}); }, [&] { return t.to(DType::f64); }})
    EXPECT_THROW(view(), Error);
  EXPECT_THROW(t.item(), Error);
  EXPECT_THROW(t.to_vector<float>(), Error);
}

TEST(Tensor, ConvertsBetweenDtypes) {
  const Tensor t = Tensor::of<double>({3}, {-1.5, 0, 2.75});
  EXPECT_THAT(t.to(DType::i32).to_vector<std::int32_t>(), ElementsAre(-1, 0, 2));
  EXPECT_THAT(t.to(DType::f32).to_vector<float>(), ElementsAre(-1.5F, 0, 2.75F));
  EXPECT_EQ(t.to(DType::f64).data<double>(), t.data<double>());
  EXPECT_THAT(Tensor::of<float>({2, 2}, {1, 2, 3, 4}).transpose().to(DType::f64).to_vector<double>(),
              ElementsAre(1, 3, 2, 4));
}

TEST(Tensor, CloneOfAViewIsContiguousAndUnshared) {
  const Tensor view = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}).transpose();
  const Tensor copy = view.clone();
  EXPECT_FALSE(view.is_contiguous());
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_TRUE(copy.unshared());
  EXPECT_TRUE(identical(copy, view));
}

TEST(Tensor, ContiguousCopiesOnlyWhenItMust) {
  const Tensor t = ones({2, 3});
  EXPECT_EQ(t.contiguous().data<float>(), t.data<float>());
  EXPECT_NE(t.transpose().contiguous().data<float>(), t.data<float>());
}

TEST(Tensor, IdenticalComparesShapeDtypeAndBits) {
  const Tensor a = Tensor::of<float>({2}, {0, NAN});
  EXPECT_TRUE(identical(a, a.clone()));
  EXPECT_FALSE(identical(a, a.reshape({2, 1})));
  EXPECT_FALSE(identical(zeros({1}), zeros({1}, DType::i32)));
  EXPECT_FALSE(identical(zeros({1}), full({1}, -0.0)));
  EXPECT_TRUE(identical(Tensor(), Tensor()));
  EXPECT_FALSE(identical(Tensor(), scalar(0)));
  EXPECT_TRUE(identical(zeros({0, 2}), ones({0, 2})));
}

TEST(Tensor, IsIndexedAlongItsFirstAxis) {
  const Tensor t = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(identical(t[-1], t.select(0, 1)));
  EXPECT_EQ(t[1][2].item(), 6);
  EXPECT_EQ(message_of([&] { t[2]; }), "select: x [2, 3] has no position 2 on axis 0");
  static_assert(std::is_copy_assignable_v<Tensor> && !std::is_assignable_v<Tensor, Tensor>);  // not t[0] = x
}

TEST(Tensor, LetsTheShapeOfATemporaryOutliveIt) {
  const Shape& shape = ones({2, 3}).shape();
  const Strides& strides = ones({2, 3}).strides();
  EXPECT_EQ(shape, (Shape{2, 3}));
  EXPECT_EQ(strides[0], 3);
}

}  // namespace
}  // namespace braid::tensor_test

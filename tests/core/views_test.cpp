#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/core/tensor.h>
#include <tests/support.h>

namespace braid::views_test {
namespace {

using testing::ElementsAre;

/// [2, 3, 4] holding 0 ... 23
Tensor counting() { return arange(24).reshape({2, 3, 4}); }

bool shares(const Tensor& view, const Tensor& of) {
  return view.data<float>() >= of.data<float>() && view.data<float>() < of.data<float>() + of.numel();
}

TEST(Views, PermuteMovesAxes) {
  const Tensor t = counting(), view = t.permute({2, 0, -2});
  EXPECT_TRUE(shares(view, t));
  EXPECT_EQ(view.shape(), (Shape{4, 2, 3}));
  for (const auto& i : indices(t.shape())) EXPECT_EQ(at(view, {i[2], i[0], i[1]}), at(t, i));
}

TEST(Views, TransposeExchangesTwoAxes) {
  const Tensor t = counting();
  EXPECT_EQ(t.transpose().shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(t.transpose(0, -1).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(t.transpose(0, -1).at({3, 1, 1}), t.at({1, 1, 3}));
  EXPECT_TRUE(identical(t.transpose(0, 2).transpose(0, 2), t));
}

TEST(Views, SliceKeepsAPartOfAnAxis) {
  const Tensor t = counting();
  EXPECT_THAT(t.slice(2, 1, 3).slice(1, -1, 3).to_vector<float>(), ElementsAre(9, 10, 21, 22));
  EXPECT_EQ(t.slice(1, 0, -1).shape(), (Shape{2, 2, 4}));
  EXPECT_EQ(t.slice(1, 3, 3).shape(), (Shape{2, 0, 4}));
  EXPECT_TRUE(t.slice(1, 3, 3).to_vector<float>().empty());
}

TEST(Views, SliceTakesSteps) {
  const Tensor t = arange(7);
  const auto values = [&](std::int64_t begin, std::int64_t end, std::int64_t step) {
    const Tensor view = t.slice(0, begin, end, step);
    EXPECT_TRUE(view.numel() == 0 || shares(view, t));
    return view.to_vector<float>();
  };
  EXPECT_THAT(values(0, 7, 2), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(values(0, 6, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(values(1, -1, 3), ElementsAre(1, 4));
  EXPECT_THAT(values(5, 6, 100), ElementsAre(5));
  EXPECT_THAT(values(-1, -8, -1), ElementsAre(6, 5, 4, 3, 2, 1, 0));
  EXPECT_THAT(values(6, 0, -2), ElementsAre(6, 4, 2));
  EXPECT_THAT(values(5, -8, -2), ElementsAre(5, 3, 1));
  EXPECT_THAT(values(3, 2, std::numeric_limits<std::int64_t>::min()), ElementsAre(3));
  EXPECT_THAT(values(0, 1, std::numeric_limits<std::int64_t>::max()), ElementsAre(0));
  EXPECT_THAT(values(3, 3, -1), ElementsAre());
  EXPECT_THAT(zeros({0}).slice(0, -1, -1, -1).to_vector<float>(), ElementsAre());
  EXPECT_THAT(t.slice(0, -1, -8, -2).slice(0, -1, -5, -3).to_vector<float>(), ElementsAre(0, 6));
  EXPECT_THAT(arange(12).reshape({2, 6}).slice(1, 0, 6, 2).transpose().clone().to_vector<float>(),
              ElementsAre(0, 6, 2, 8, 4, 10));
}

TEST(Views, OfStepsGoBackAndForth) {
  const Tensor t = counting();
  const Tensor back = t.slice(2, -1, -5, -1).slice(0, -1, -3, -1);
  EXPECT_EQ(back.at({0, 1, 0}), t.at({1, 1, 3}));
  EXPECT_TRUE(identical(back.slice(0, -1, -3, -1).slice(2, -1, -5, -1), t));
  EXPECT_TRUE(identical(back.reshape({24}), back.clone().reshape({24})));
  EXPECT_TRUE(identical(back.transpose().clone(), back.clone().transpose().clone()));
  EXPECT_TRUE(shares(t.slice(0, -1, -3, -1).slice(1, -1, -4, -1).reshape({6, 4}), t));  // both go back evenly
}

TEST(Views, SelectRemovesAnAxis) {
  const Tensor t = counting();
  EXPECT_THAT(t.select(1, -1).to_vector<float>(), ElementsAre(8, 9, 10, 11, 20, 21, 22, 23));
  EXPECT_EQ(t.select(0, 1).select(-1, 2).shape(), Shape{3});
}

TEST(Views, BroadcastRepeatsWithoutCopying) {
  const Tensor t = Tensor::of<float>({2, 1}, {1, 2}), view = t.broadcast_to({2, 2, 3});
  EXPECT_TRUE(shares(view, t));
  EXPECT_THAT(view.to_vector<float>(), ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
  EXPECT_EQ(scalar(3).broadcast_to({0, 2}).numel(), 0);
  EXPECT_EQ(t.broadcast_to({2, 0}).shape(), (Shape{2, 0}));
}

TEST(Views, ExpandAndSqueezeAddAndRemoveAxes) {
  const Tensor t = counting();
  EXPECT_EQ(t.expand_dims(0).shape(), (Shape{1, 2, 3, 4}));
  EXPECT_EQ(t.expand_dims(-1).shape(), (Shape{2, 3, 4, 1}));
  EXPECT_EQ(t.expand_dims(-2).shape(), (Shape{2, 3, 1, 4}));
  for (int axis = 0; axis <= 3; ++axis) {
    EXPECT_TRUE(identical(t.transpose().expand_dims(axis).squeeze(axis), t.transpose()));
    EXPECT_TRUE(t.expand_dims(axis).is_contiguous());
  }
}

TEST(Views, ExpandStopsAtTheLargestRank) {
  const Tensor t = ones({1, 1, 1, 1, 1, 1, 1, 2});
  EXPECT_THROW(t.expand_dims(8), ShapeError);
  EXPECT_THROW(t.expand_dims(0), ShapeError);
  EXPECT_THAT(t.squeeze(0).expand_dims(-1).to_vector<float>(), ElementsAre(1, 1));
}

TEST(Views, ReshapeOfAContiguousTensorIsAView) {
  const Tensor t = counting();
  EXPECT_TRUE(shares(t.reshape({4, 6}), t));
  EXPECT_TRUE(shares(t.slice(0, 1, 2).reshape({-1}), t));
  EXPECT_EQ(t.reshape({-1, 8}).shape(), (Shape{3, 8}));
  EXPECT_EQ(t.reshape({2, 1, 3, 1, 4, 1}).shape(), (Shape{2, 1, 3, 1, 4, 1}));
}

TEST(Views, ReshapeOfAStridedViewSharesWhereItCan) {
  const Tensor t = counting();
  EXPECT_TRUE(shares(t.slice(2, 0, 2).reshape({6, 2}), t));        // leading axes merge
  EXPECT_TRUE(shares(t.slice(2, 0, 2).reshape({2, 3, 2, 1}), t));  // an axis splits
  EXPECT_TRUE(shares(t.slice(1, 0, 2).reshape({2, 8}), t));        // trailing axes merge
  EXPECT_FALSE(shares(t.slice(2, 0, 2).reshape({2, 6}), t));       // a gap between rows
  EXPECT_FALSE(shares(t.transpose().reshape({-1}), t));
  for (int axis = 0; axis <= 3; ++axis)  // one of size 1 is no gap
    EXPECT_TRUE(shares(t.slice(2, 0, 2).expand_dims(axis).reshape({6, 2}), t)) << axis;
}

TEST(Views, ReshapeKeepsTheOrderOfElements) {
  const Tensor t = counting(), one = ones({1, 3, 1});
  const Tensor views[] = {t,
                          t.transpose(),
                          t.permute({2, 1, 0}),
                          t.slice(1, 1, 3),
                          t.slice(2, 1, 3).transpose(0, 1),
                          t.select(1, 2),
                          t.slice(0, 0, 1).broadcast_to({4, 3, 4}),
                          t.expand_dims(1).broadcast_to({2, 5, 3, 4}).slice(3, 0, 2),
                          one.transpose(0, 2),
                          one.transpose()};
  for (const Tensor& view : views) {
    const std::int64_t n = view.numel(), last = view.size(-1);
    for (const Shape& shape : {Shape{n}, Shape{n / last, last}, Shape{last, n / last}, Shape{1, n, 1},
                               view.shape().inserted(1, 1), Shape{n / last, 1, last}}) {
      const Tensor reshaped = view.reshape(shape);
      EXPECT_EQ(reshaped.shape(), shape);
      EXPECT_EQ(reshaped.to_vector<float>(), view.to_vector<float>())
          << to_string(view.shape()) << " to " << to_string(shape);
    }
  }
}

TEST(Views, ReshapeOfNoElements) {
  const Tensor t = zeros({3, 0});
  EXPECT_EQ(t.reshape({0}).shape(), Shape{0});
  EXPECT_EQ(t.transpose().reshape({0}).shape(), Shape{0});
  EXPECT_EQ(t.transpose().reshape({5, 0, 2}).shape(), (Shape{5, 0, 2}));
  EXPECT_EQ(t.reshape({-1, 7}).shape(), (Shape{0, 7}));
}

TEST(Views, OfScalars) {
  EXPECT_EQ(scalar(2).reshape({1, 1}).item(), 2);
  EXPECT_EQ(ones({1, 1}).reshape(Shape{}).rank(), 0);
  EXPECT_EQ(scalar(2).expand_dims(0).shape(), Shape{1});
}

TEST(Views, ErrorsNameTheShapes) {
  const Tensor t = counting();
  const auto error = [](auto call) { return message_of(call); };
  EXPECT_EQ(error([&] { t.permute({0, 1}); }), "permute: expected 3 axes for shape [2, 3, 4] but got 2");
  EXPECT_EQ(error([&] { t.permute({0, 1, 1}); }), "permute: axis 1 of shape [2, 3, 4] is given twice");
  EXPECT_EQ(error([&] { t.transpose(0, 3); }), "transpose: x [2, 3, 4] has no axis 3");
  EXPECT_EQ(error([&] { t.slice(1, 2, 5); }), "slice: [2, 5) is not inside axis 1 of shape [2, 3, 4]");
  EXPECT_EQ(error([&] { t.slice(1, 2, 1); }), "slice: [2, 1) is not inside axis 1 of shape [2, 3, 4]");
  EXPECT_EQ(error([&] { t.slice(1, -4, 2); }), "slice: [-4, 2) is not inside axis 1 of shape [2, 3, 4]");
  EXPECT_EQ(error([&] { t.slice(1, 0, 1, 0); }), "slice: step must not be 0");
  EXPECT_EQ(error([&] { t.slice(1, 0, 2, -1); }), "slice: [0, 2) by -1 is not inside axis 1 of shape [2, 3, 4]");
  EXPECT_EQ(error([&] { t.slice(1, 3, 0, -1); }), "slice: [3, 0) by -1 is not inside axis 1 of shape [2, 3, 4]");
  EXPECT_EQ(error([&] { t.slice(1, 2, -5, -1); }), "slice: [2, -5) by -1 is not inside axis 1 of shape [2, 3, 4]");
  EXPECT_EQ(error([&] { t.slice(1, 0, 4, 2); }), "slice: [0, 4) by 2 is not inside axis 1 of shape [2, 3, 4]");
  EXPECT_EQ(error([&] { t.select(0, 2); }), "select: x [2, 3, 4] has no position 2 on axis 0");
  EXPECT_EQ(error([&] { zeros({0}).select(0, 0); }), "select: x [0] has no position 0 on axis 0");
  EXPECT_EQ(error([&] { t.broadcast_to({2, 3, 5}); }), "broadcast_to: shape [2, 3, 4] does not broadcast to [2, 3, 5]");
  EXPECT_EQ(error([&] { t.broadcast_to({4}); }), "broadcast_to: shape [2, 3, 4] does not broadcast to [4]");
  EXPECT_EQ(error([&] { t.expand_dims(4); }), "expand_dims: shape [2, 3, 4] has no place 4 for an axis");
  EXPECT_EQ(error([&] { t.squeeze(0); }), "squeeze: axis 0 of shape [2, 3, 4] must have size 1");
  EXPECT_EQ(error([&] { t.reshape({5, 5}); }), "reshape: 24 elements of shape [2, 3, 4] do not fit into shape [5, 5]");
  EXPECT_EQ(error([&] {
              t.reshape({-1, 5});
            }),
            "reshape: no size for the axis given as -1 fits 24 elements into [1, 5]");
  EXPECT_EQ(error([&] {
              zeros({0}).reshape({-1, 0});
            }),
            "reshape: no size for the axis given as -1 fits 0 elements into [1, 0]");
  EXPECT_EQ(error([&] { t.reshape({-1, -1}); }), "reshape: sizes must not be negative but got -1");
}

}  // namespace
}  // namespace braid::views_test

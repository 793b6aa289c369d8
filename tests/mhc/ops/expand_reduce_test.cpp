#include <braid/mhc/ops/expand_reduce.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sum.h>
#include <tests/mhc/support.h>

namespace braid::mhc::expand_reduce_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ExpandReduce, OpensStreamsAsCopies) {
  const Tensor x = Tensor::of<double>({2, 2}, {1, 2, 3, 4});
  const Var streams = expand_streams(x, 3);
  EXPECT_EQ(streams.shape(), Shape({2, 3, 2}));
  EXPECT_THAT(streams.value().to_vector<double>(), ElementsAre(1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4));
  EXPECT_EQ(expand_streams(Tensor::of<double>({2}, {1, 2}), 3).shape(), Shape({3, 2}));
}

TEST(ExpandReduce, ReducesByMeanOrSum) {
  const Tensor x = Tensor::of<double>({1, 2, 2}, {1, 2, 3, 5});
  EXPECT_THAT(reduce_streams(x).value().to_vector<double>(), ElementsAre(2, 3.5));
  EXPECT_THAT(reduce_streams(x, StreamReduction::sum).value().to_vector<double>(), ElementsAre(4, 7));
}

TEST(ExpandReduce, CopiesReduceToWhatOpenedThem) {
  Rng rng(1);
  const Tensor x = random({3, 5}, rng);
  EXPECT_LT(largest_difference(reduce_streams(expand_streams(x, 4)).value(), x), 1e-15);
}

TEST(ExpandReduce, EqualsTheOpsItStandsFor) {
  Rng rng(2);
  for (const Shape& shape : {Shape{0, 3, 5}, Shape{2, 4, 0}, Shape{1, 1}, Shape{7, 3, 17}, Shape{700, 4, 33}}) {
    const Tensor x = random(shape, rng), row = x.select(-2, 0), strided = x.transpose();
    const std::int64_t n = shape[-2];
    const auto values = [](const Var& v) { return v.value().contiguous().to_vector<double>(); };
    EXPECT_EQ(values(expand_streams(row, n)), values(broadcast_to(expand_dims(row, -2), shape)));
    EXPECT_LT(largest_difference(reduce_streams(x).value(), mean(x, {-2}).value()), 1e-15);
    EXPECT_LT(largest_difference(reduce_streams(x, StreamReduction::sum).value(), sum(x, {-2}).value()), 1e-14);
    if (shape[-1] == 0) continue;  // no streams
    EXPECT_LT(largest_difference(reduce_streams(strided).value(), mean(strided, {-2}).value()), 1e-14);
  }
}

TEST(ExpandReduce, PassesGradcheck) {
  Rng rng(1);
  for (const StreamReduction how : {StreamReduction::mean, StreamReduction::sum}) {
    const auto open_and_close = [how](std::span<const Var> in) {
      return reduce_streams(expand_streams(in[0], 3) * in[1], how);
    };
    const GradcheckResult result = gradcheck(open_and_close, {random({2, 5}, rng), random({3, 5}, rng)});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(ExpandReduce, RejectsShapesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        expand_streams(zeros({2, 8}), 0);
      },
      ThrowsMessage<ValueError>(HasSubstr("expand_streams: n must be >= 1 but is 0")));
  EXPECT_THAT([] { expand_streams(scalar(1), 2); }, ThrowsMessage<ShapeError>(HasSubstr("x must have shape [..., C]")));
  EXPECT_THAT([] { reduce_streams(zeros({4})); },
              ThrowsMessage<ShapeError>(HasSubstr("reduce_streams: x must have shape [..., n, C] but has [4]")));
}

}  // namespace
}  // namespace braid::mhc::expand_reduce_test

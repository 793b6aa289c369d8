#include <braid/mhc/ops/expand_reduce.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sum.h>
#include <tests/mhc/support.h>

namespace braid::mhc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Streams, OpenAsCopies) {
  const Tensor x = Tensor::of<double>({2, 2}, {1, 2, 3, 4});
  const Var streams = expand_streams(x, 3);
  EXPECT_EQ(streams.shape(), Shape({2, 3, 2}));
  EXPECT_THAT(streams.value().to_vector<double>(), ElementsAre(1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4));
  EXPECT_EQ(expand_streams(Tensor::of<double>({2}, {1, 2}), 3).shape(), Shape({3, 2}));
}

TEST(Streams, ReduceByMeanOrSum) {
  const Tensor x = Tensor::of<double>({1, 2, 2}, {1, 2, 3, 5});
  EXPECT_THAT(reduce_streams(x).value().to_vector<double>(), ElementsAre(2, 3.5));
  EXPECT_THAT(reduce_streams(x, StreamReduction::sum).value().to_vector<double>(), ElementsAre(4, 7));
}

TEST(Streams, CopiesReduceToWhatOpenedThem) {
  Rng rng(1);
  const Tensor x = random({3, 5}, rng);
  EXPECT_LT(largest_difference(reduce_streams(expand_streams(x, 4)).value(), x), 1e-15);
}

TEST(Streams, OpenAndCloseAsTheOpsTheyStandFor) {
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

TEST(Streams, AreReadAndWrittenByTheEquations) {
  Rng rng(1);
  for (const bool per_token : {false, true}) {
    const Shape lead = per_token ? Shape{2, 3} : Shape{};
    const Tensor x = random({2, 3, 4, 5}, rng), y = random({2, 3, 5}, rng);
    const Tensor pre = random(lead.concat({4}), rng), post = random(lead.concat({4}), rng);
    const Tensor res = random(lead.concat({4, 4}), rng);
    const Tensor u = read_streams(pre, x).value(), out = write_streams(res, post, x, y).value();
    const Tensor p = pre.broadcast_to({2, 3, 4}), q = post.broadcast_to({2, 3, 4}), m = res.broadcast_to({2, 3, 4, 4});
    for (std::int64_t c = 0; c < 5; ++c) {
      double read = 0;
      for (std::int64_t i = 0; i < 4; ++i) {
        read += p.at({1, 2, i}) * x.at({1, 2, i, c});
        double written = q.at({1, 2, i}) * y.at({1, 2, c});
        for (std::int64_t j = 0; j < 4; ++j) written += m.at({1, 2, i, j}) * x.at({1, 2, j, c});
        EXPECT_NEAR(out.at({1, 2, i, c}), written, 1e-14);
      }
      EXPECT_NEAR(u.at({1, 2, c}), read, 1e-14);
    }
  }
}

TEST(Streams, PassGradcheck) {
  Rng rng(1);
  for (const Shape& lead : {Shape{}, Shape{3}, Shape{2, 3}}) {
    const Tensor x = random({2, 3, 4, 5}, rng), y = random({2, 3, 5}, rng);
    const bool fits = lead.rank() != 1;  // [3] broadcasts along the last leading axis
    const Shape maps = fits ? lead : Shape{1, 3};
    const auto f = [](std::span<const Var> in) {
      return write_streams(in[0], in[1], in[3], in[4] + read_streams(in[2], in[3]));
    };
    const GradcheckResult result = gradcheck(
        f, {random(maps.concat({4, 4}), rng), random(maps.concat({4}), rng), random(maps.concat({4}), rng), x, y});
    EXPECT_TRUE(result.ok) << result.message;
  }
  for (const StreamReduction how : {StreamReduction::mean, StreamReduction::sum}) {
    const auto open_and_close = [how](std::span<const Var> in) {
      return reduce_streams(expand_streams(in[0], 3) * in[1], how);
    };
    const GradcheckResult result = gradcheck(open_and_close, {random({2, 5}, rng), random({3, 5}, rng)});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST(Streams, RejectShapesThatDoNotFit) {
  const Var x = zeros({2, 4, 8});
  EXPECT_THAT([&] { expand_streams(x, 0); }, ThrowsMessage<ValueError>(HasSubstr("n must be >= 1 but is 0")));
  EXPECT_THAT([&] { expand_streams(scalar(1), 2); },
              ThrowsMessage<ShapeError>(HasSubstr("x must have shape [..., C]")));
  EXPECT_THAT([&] { reduce_streams(zeros({4})); },
              ThrowsMessage<ShapeError>(HasSubstr("reduce_streams: x must have shape [..., n, C] but has [4]")));
  EXPECT_THAT([&] { read_streams(zeros({3}), x); },
              ThrowsMessage<ShapeError>(HasSubstr("one entry for each stream of x [2, 4, 8] but has shape [3]")));
  const Var res = zeros({4, 4}), post = zeros({4}), y = zeros({2, 8});
  EXPECT_THAT(
      [&] {
        write_streams(zeros({4, 3}), post, x, y);
      },
      ThrowsMessage<ShapeError>(HasSubstr("h_res must have shape [..., 4, 4] to match x [2, 4, 8] but has [4, 3]")));
  EXPECT_THAT([&] { write_streams(res, zeros({5}), x, y); },
              ThrowsMessage<ShapeError>(HasSubstr("h_post must have shape [..., 4] to match x [2, 4, 8] but has [5]")));
  EXPECT_THAT([&] { write_streams(res, post, x, x); },
              ThrowsMessage<ShapeError>(HasSubstr("y must have shape [2, 8] to match x [2, 4, 8] but has [2, 4, 8]")));
}

}  // namespace
}  // namespace braid::mhc

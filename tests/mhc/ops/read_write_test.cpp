#include <braid/mhc/ops/read_write.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/derivatives.h>
#include <tests/mhc/support.h>

namespace braid::mhc::read_write_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ReadWrite, FollowsTheEquations) {
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

TEST(ReadWrite, PassesGradcheck) {
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
}

// By the rules of vjps, which only a gradient of a gradient's gradient asks for.
TEST(ReadWrite, PassesGradcheckOfThirdDerivatives) {
  Rng rng(4);
  const HigherOrder scope;
  const auto energy = [](const std::vector<Var>& in) {
    const Var written = write_streams(in[0], in[1], in[3], in[4] + read_streams(in[2], in[3]));
    return sum(pow(mix_streams(in[0], written), 2));
  };
  const auto slopes = [&](std::span<const Var> in) {
    Var total = scalar(0, DType::f64);
    for (const Var& slope : grad(energy)(std::vector(in.begin(), in.end()))) total = total + sum(sin(slope));
    return total;
  };
  const GradcheckResult result = gradcheck(
      slopes, {random({2, 2}, rng), random({2}, rng), random({2}, rng), random({3, 2, 2}, rng), random({3, 2}, rng)},
      {.order = 2});
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(ReadWrite, TakesMapsOfAnyStrides) {
  Rng rng(5);
  const Tensor x = random({3, 1, 4, 5}, rng), f = random({3, 1, 5}, rng), rows = random({3, 6, 4}, rng);
  const Tensor pre = random({1, 3, 4}, rng).transpose(0, 1), one = random({4}, rng);
  const Tensor res = rows.slice(1, 2, 6).expand_dims(1), post = rows.select(1, 1).expand_dims(1);
  const Tensor every_other = random({4, 2}, rng).select(1, 0), same = random({1}, rng).broadcast_to({3, 1, 4});
  for (const Tensor& h : {pre, post, one.broadcast_to({3, 1, 4}), every_other, same}) {
    const auto clone = [](const Tensor& t) { return t.clone(); };
    EXPECT_TRUE(identical(read_streams(h, x).value(), read_streams(clone(h), x).value()));
    EXPECT_TRUE(identical(write_streams(res, h, x, f).value(), write_streams(clone(res), clone(h), x, f).value()));
    const auto write = [](const Var& a, const Var& b, const Var& c, const Var& d) { return write_streams(a, b, c, d); };
    const auto grads = vjp(write, x, res, h, x, f), expected = vjp(write, x, clone(res), clone(h), x, f);
    for (std::size_t i = 0; i < grads.size(); ++i) EXPECT_TRUE(identical(grads[i], expected[i])) << "input " << i;
  }
  EXPECT_EQ(read_streams(zeros({3, 0}), zeros({3, 0, 5})).shape(), Shape({3, 5}));
}

TEST(ReadWrite, TakesMapsThatRepeatOrRunTheOtherWayAlongTheFirstAxis) {
  Rng rng(6);
  for (const auto& [batch, tokens] : {std::pair{2, 3}, {3, 3}, {2, 4}, {3, 4}}) {
    const Tensor x = random({batch, tokens, 4, 5}, rng), f = random({batch, tokens, 5}, rng);
    for (const Tensor& h :
         {random({tokens, 4}, rng).broadcast_to({batch, tokens, 4}), random({tokens, batch, 4}, rng).transpose(0, 1)})
      for (const Tensor& res :
           {random({tokens, 4, 4}, rng).broadcast_to({batch, tokens, 4, 4}),
            random({tokens, batch, 4, 4}, rng).transpose(0, 1), random({4}, rng).broadcast_to({4, 4})}) {
        EXPECT_TRUE(identical(read_streams(h, x).value(), read_streams(h.clone(), x).value()));
        EXPECT_TRUE(
            identical(write_streams(res, h, x, f).value(), write_streams(res.clone(), h.clone(), x, f).value()));
        const auto deferred = [&](const Tensor& post) {
          StreamState state{.last = {.u = {}, .maps = {}, .x = x}};
          state.last = read_maps(StreamMaps{post, post, res.clone()}, state);
          state.f = f;
          return state.value().value();
        };
        EXPECT_TRUE(identical(deferred(h), deferred(h.clone())));
      }
  }
}

TEST(ReadWrite, RejectsShapesThatDoNotFit) {
  const Var x = zeros({2, 4, 8});
  EXPECT_THAT([&] { read_streams(zeros({3}), x); },
              ThrowsMessage<ShapeError>(HasSubstr("one entry for each stream of x [2, 4, 8] but has shape [3]")));
  const Var res = zeros({4, 4}), post = zeros({4}), f = zeros({2, 8});
  EXPECT_THAT(
      [&] {
        write_streams(zeros({4, 3}), post, x, f);
      },
      ThrowsMessage<ShapeError>(HasSubstr("h_res must have shape [..., 4, 4] to match x [2, 4, 8] but has [4, 3]")));
  EXPECT_THAT([&] { write_streams(res, zeros({5}), x, f); },
              ThrowsMessage<ShapeError>(HasSubstr("h_post must have shape [..., 4] to match x [2, 4, 8] but has [5]")));
  EXPECT_THAT([&] { write_streams(res, post, x, x); },
              ThrowsMessage<ShapeError>(HasSubstr("f must have shape [2, 8] to match x [2, 4, 8] but has [2, 4, 8]")));
}

}  // namespace
}  // namespace braid::mhc::read_write_test

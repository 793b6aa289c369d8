#include <braid/nn/optim/clip.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <braid/nn/linear.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/sgd.h>

#include <tests/support.h>
#include "tests/nn/module_checks.h"

namespace braid::nn::clip_test {
namespace {

using testing::ElementsAre;

std::vector<Var> three_four() { return {Tensor::of<float>({1}, {3}), Tensor::of<float>({2}, {0, 4})}; }

TEST(ClipGradNorm, ScalesWhatIsLongerThanTheLimit) {
  std::vector<Var> grads{Tensor::of<double>({1}, {3}), Tensor::of<double>({2}, {0, 4})};
  EXPECT_DOUBLE_EQ(clip_grad_norm(grads, 1), 5);
  const double factor = 1 / (5 + 1e-6);
  EXPECT_THAT(grads[0].value().to_vector<double>(), ElementsAre(3 * factor));
  EXPECT_THAT(grads[1].value().to_vector<double>(), ElementsAre(0, 4 * factor));
}

template <class Optimizer, class Settings>
void expect_the_same_bits(const Settings& settings) {
  Rng rng(7);
  const Linear start(37, 21, rng), grads(37, 21, rng);
  for (const double max_norm : {0.5, 1e6}) {
    Linear clipped = start, fused = start, scaled = grads;
    Optimizer first(settings), second(settings);
    const double norm = clip_grad_norm(scaled, max_norm);
    const Clipping same = clipping(grads, max_norm);
    EXPECT_EQ(same.norm, norm);
    EXPECT_EQ(same.factor<1, norm> max_norm);
    for (int i = 0; i < 3; ++i) {
      first.step(clipped, scaled);
      second.step(fused, grads, same.factor);
    }
    EXPECT_TRUE(identical(clipped.weight.value(), fused.weight.value()));
    EXPECT_TRUE(identical(clipped.bias.value(), fused.bias.value()));
  }
}

TEST(Clipping, IsWhatAnOptimizerScalesBy) {
  expect_the_same_bits<AdamW>(AdamWSettings{.lr = 0.1, .weight_decay = 0.1});
  expect_the_same_bits<Adam>(AdamSettings{.lr = 0.1, .weight_decay = 0.1});
  expect_the_same_bits<SGD>(SGDSettings{.lr = 0.1});
  expect_the_same_bits<SGD>(SGDSettings{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
}

TEST(ClipGradNorm, LeavesWhatIsShorter) {
  std::vector<Var> grads = three_four();
  const std::byte* const storage = grads[0].value().bytes();
  EXPECT_DOUBLE_EQ(clip_grad_norm(grads, 6), 5);
  EXPECT_THAT(grads[1].value().to_vector<float>(), ElementsAre(0, 4));
  EXPECT_EQ(grads[0].value().bytes(), storage);
}

TEST(ClipGradNorm, WorksInPlaceUnlessTheStorageIsShared) {
  std::vector<Var> grads = three_four();
  const Tensor held = grads[0].value();
  const std::byte* const second = grads[1].value().bytes();
  clip_grad_norm(grads, 1);
  EXPECT_THAT(held.to_vector<float>(), ElementsAre(3));
  EXPECT_EQ(grads[1].value().bytes(), second);
}

TEST(ClipGradNorm, ScalesASharedGradientOnceForEachParameter) {
  const Tensor same = Tensor::of<double>({1}, {4});
  std::vector<Var> grads{same, same};
  EXPECT_DOUBLE_EQ(clip_grad_norm(grads, 1), std::sqrt(32.0));
  EXPECT_DOUBLE_EQ(grads[0].item(), 4 / (std::sqrt(32.0) + 1e-6));
  EXPECT_DOUBLE_EQ(grads[1].item(), 4 / (std::sqrt(32.0) + 1e-6));
}

TEST(ClipGradNorm, ReadsViews) {
  std::vector<Var> grads{Tensor::of<double>({2, 2}, {1, 2, 3, 4}).transpose().slice(0, 0, 1),
                         ones({}, DType::f64).broadcast_to({4})};
  EXPECT_DOUBLE_EQ(clip_grad_norm(grads, 1), std::sqrt(1.0 + 9 + 4));
}

TEST(ClipGradNorm, SumsLongTensorsInF64) {
  constexpr std::int64_t kSize = 100003;  // several blocks and a rest
  Var grads = full({kSize}, 0.1);
  const double expected = static_cast<double>(0.1F) * std::sqrt(static_cast<double>(kSize));
  EXPECT_NEAR(clip_grad_norm(grads, 1e9), expected, 1e-12 * expected);
}

TEST(ClipGradNorm, GivesTheSameBitsForAnyNumberOfThreads) {
  Rng rng(1);
  const Tensor values = randn({70001}, rng);
  std::vector<double> norms;
  std::vector<Tensor> clipped;
  for (const int threads : {1, 2, 3}) {
    const WithThreads with(threads);
    Var grads = values.clone();
    norms.push_back(clip_grad_norm(grads, 1));
    clipped.push_back(grads.value());
  }
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
  EXPECT_TRUE(identical(clipped[0], clipped[1]));
  EXPECT_TRUE(identical(clipped[0], clipped[2]));
}

TEST(ClipGradNorm, ShowsNaNAndScalesNothing) {
  Var grads = Tensor::of<float>({2}, {std::numeric_limits<float>::quiet_NaN(), 5});
  EXPECT_TRUE(std::isnan(clip_grad_norm(grads, 1)));
  EXPECT_EQ(grads.value().at({1}), 5);
}

TEST(ClipGradNorm, RejectsALimitThatIsNotPositive) {
  Var grads = ones({2});
  expect_error<ValueError>([&] { clip_grad_norm(grads, 0); }, "clip_grad_norm: max_norm must be positive but is 0");
  expect_error<ValueError>([&] { clip_grad_norm(grads, std::nan("")); },
                           "clip_grad_norm: max_norm must be positive but is nan");
}

}  // namespace
}  // namespace braid::nn::clip_test

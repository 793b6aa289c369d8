#include <braid/nn/rotary.h>

#include <cmath>

#include <gtest/gtest.h>

#include "tests/nn/module_checks.h"

namespace braid::nn::rotary_test {
namespace {

using Kind = RotaryScaling::Kind;

TEST(RotaryScaling, IsNoneUnlessAsked) {
  const RotaryTurns turns = scaled_turns(5, 500, {});
  EXPECT_EQ(turns.frequencies, rotary_frequencies(5, 500));
  EXPECT_EQ(turns.magnitude, 1);
  const RotaryScaling usual{.factor = 1, .first_context = 1, .slow = 1, .fast = 4, .magnitude = 0};
  EXPECT_EQ(RotaryScaling(), usual);
}

// Frequencies of transformers 5, `_compute_llama3_parameters` and `_compute_yarn_parameters`, evaluated in f64.
TEST(RotaryScaling, GivesTheFrequenciesOfOthers) {
  const RotaryTurns llama = scaled_turns(4, 10000, {.kind = Kind::llama3, .factor = 8, .first_context = 64});
  expect_close(Tensor::of<double>({4}, std::span<const double>(llama.frequencies)),
               Tensor::of<double>({4}, {1.0, 0.013042256043820465, 0.00125, 0.000125}), 1e-14);
  EXPECT_EQ(llama.magnitude, 1);
  for (const bool whole : {true, false}) {
    const RotaryTurns yarn = scaled_turns(
        8, 10000, {.kind = Kind::yarn, .factor = 4, .first_context = 4096, .fast = 32, .whole_pairs = whole});
    expect_close(
        Tensor::of<double>({8}, std::span<const double>(yarn.frequencies)),
        whole ? Tensor::of<double>({8}, {1.0, 0.31622776601683794, 0.1, 0.02569350598886808, 0.00625,
                                         0.001383496476323666, 0.00025, 7.905694150420948e-05})
              : Tensor::of<double>({8}, {1.0, 0.31622776601683794, 0.1, 0.02861360881198889, 0.006556971521129435,
                                         0.0012856320307266882, 0.00025, 7.905694150420948e-05}),
        1e-14);
    EXPECT_DOUBLE_EQ(yarn.magnitude, 0.1 * std::log(4) + 1);
  }
  EXPECT_EQ(scaled_turns(8, 10000, {.kind = Kind::yarn, .factor = 4, .magnitude = 1.5}).magnitude, 1.5);
}

// `_compute_yarn_parameters` cuts a longer ramp to the pairs 0 to 15, and makes a step of one without width.
TEST(RotaryScaling, ClampsTheRampOfYarn) {
  const RotaryTurns step = scaled_turns(8, 10000, {.kind = Kind::yarn, .factor = 4, .first_context = 4, .fast = 32});
  for (const bool whole : {true, false}) {
    RotaryScaling longer{.kind = Kind::yarn, .factor = 4, .first_context = 4096, .slow = 1e-6, .fast = 1000};
    longer.whole_pairs = whole;
    const RotaryTurns ramp = scaled_turns(8, 10000, longer);
    for (std::size_t i = 0; i < 8; ++i) {
      const double pair = static_cast<double>(i), frequency = std::pow(10000.0, -pair / 8), kept = 1 - pair / 15;
      EXPECT_NEAR(ramp.frequencies[i], frequency * (kept + (1 - kept) / 4), 1e-15) << i;
      EXPECT_NEAR(step.frequencies[i], i == 0 ? frequency : frequency / 4, 1e-15) << i;
    }
  }
}

TEST(RotaryScaling, RefusesWhatIsNoScaling) {
  for (const RotaryScaling& bad : {RotaryScaling{.kind = Kind::llama3, .factor = 0.9},
                                   {.kind = Kind::yarn, .factor = NAN},
                                   {.kind = Kind::yarn, .first_context = 0},
                                   {.kind = Kind::llama3, .slow = 0},
                                   {.kind = Kind::llama3, .slow = 4, .fast = 4}})
    EXPECT_THROW(scaled_turns(4, 10000, bad), ValueError);
  EXPECT_THROW(scaled_turns(4, 0, {}), ValueError);
  EXPECT_NO_THROW(scaled_turns(4, 10000, {.kind = Kind::llama3, .factor = 1}));
}

}  // namespace
}  // namespace braid::nn::rotary_test

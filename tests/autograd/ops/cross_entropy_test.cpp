#include <braid/autograd/ops/cross_entropy.h>

#include <tests/autograd/ops/support.h>
#include <cmath>
#include <limits>
#include <numeric>

#include <braid/autograd/ops/softmax.h>

namespace braid::op_tests::cross_entropy_test {
namespace {

using ::testing::ThrowsMessage;

/// logits [rows, V], by the definition.
double reference(const Tensor& logits, const Tensor& targets, int ignore_index) {
  double sum = 0;
  int count = 0;
  for (std::int64_t i = 0; i < logits.size(0); ++i) {
    const auto target = static_cast<std::int64_t>(targets.at({i}));
    if (target == ignore_index) continue;
    double total = 0;
    for (std::int64_t c = 0; c < logits.size(1); ++c) total += std::exp(logits.at({i, c}));
    sum += std::log(total) - logits.at({i, target});
    ++count;
  }
  return sum / count;
}

Tensor random_targets(std::int64_t rows, std::int64_t classes) {
  Rng rng(5);
  return randint(0, classes, {rows}, rng);
}

GradcheckFunction with_targets(Tensor targets, std::int32_t ignore_index = -100) {
  return [=](std::span<const Var> x) { return cross_entropy(x[0], targets, ignore_index); };
}

TEST(CrossEntropy, MatchesTheReference) {
  for (const std::int64_t classes : {1, 5, 16, 65, 130}) {
    const Tensor logits = normal({9, classes}, 1), targets = random_targets(9, classes);
    EXPECT_NEAR(cross_entropy(logits, targets).item(), reference(logits, targets, -100), 1e-13);
    EXPECT_NEAR(cross_entropy(logits.to(DType::f32), targets).item(), reference(logits, targets, -100), 2e-6);
  }
}

TEST(CrossEntropy, GradientsPassGradcheck) {
  for (const std::int64_t classes : {1, 5, 19}) {
    expect_gradients(with_targets(random_targets(6, classes)), {normal({6, classes}, 1)});
    expect_gradients(with_targets(random_targets(6, classes).reshape({2, 3})), {normal({2, 3, classes}, 1)});
  }
  expect_gradients(with_targets(random_targets(2000, 20)), {normal({2000, 20}, 1)});  // several blocks of rows
}

TEST(CrossEntropy, LeavesIgnoredTargetsOut) {
  const Tensor logits = normal({4, 5}, 1), targets = i32({4}, {2, -100, 0, 4});
  EXPECT_NEAR(cross_entropy(logits, targets).item(), reference(logits, targets, -100), 1e-13);
  const Tensor others = i32({4}, {2, 4, 0, 4});
  EXPECT_NEAR(cross_entropy(logits, others, 4).item(), reference(logits, others, 4), 1e-13);
  expect_gradients(with_targets(targets), {logits});
}

TEST(CrossEntropy, IsZeroWhenNoTargetCounts) {
  EXPECT_EQ(cross_entropy(normal({2, 5}), i32({2}, {7, 7}), 7).item(), 0);
  const auto grads = gradients(with_targets(i32({2}, {7, 7}), 7), {normal({2, 5})}, scalar(1, DType::f64));
  expect_close(grads[0], zeros({2, 5}, DType::f64));
  EXPECT_EQ(cross_entropy(normal({0, 5}), i32({0}, {})).item(), 0);
}

TEST(CrossEntropy, SurvivesLargeLogits) {
  const Tensor logits = f64({2, 3}, {1000, -1000, 0, -1000, -1000, -2000});
  for (const DType dtype : {DType::f32, DType::f64}) {
    EXPECT_NEAR(cross_entropy(logits.to(dtype), i32({2}, {0, 1})).item(), std::log(2) / 2, 1e-6);
    EXPECT_NEAR(cross_entropy(logits.to(dtype), i32({2}, {1, 1})).item(), 1000 + std::log(2) / 2, 1e-3);
  }
}

TEST(CrossEntropy, TheGradientDoesNotDependOnAnOffsetOfTheLogits) {
  const auto eighths = [](double offset) {
    return [offset](auto v) { return static_cast<decltype(v)>(std::round(8 * v) / 8 + offset); };
  };
  const Tensor logits = normal({9, 40}, 1, DType::f32), targets = random_targets(9, 40);
  const auto gradient = [&](double offset) {
    return gradients(with_targets(targets), {map("offset", eighths(offset), logits)}, ones({}))[0];
  };
  for (const double offset : {1e3, 1e6, -1e6}) expect_close(gradient(offset), gradient(0), 0);
}

TEST(CrossEntropy, TheGradientOfAConfidentTargetDoesNotCancel) {
  for (const double margin : {5.0, 15.0, 30.0, 80.0}) {
    const Tensor logits = f64({1, 4}, {0.25, margin, -1, 0.5}), target = i32({1}, {1});
    const double others = (std::exp(0.25) + std::exp(-1) + std::exp(0.5)) * std::exp(-margin);
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor dx = gradients(with_targets(target), {logits.to(dtype)}, ones({}, dtype))[0];
      const double bound = dtype == DType::f32 ? 5e-7 : 1e-15;
      EXPECT_NEAR(dx.at({0, 1}) / (-others / (1 + others)), 1, bound) << margin;
      EXPECT_NEAR(cross_entropy(logits.to(dtype), target).item() / std::log1p(others), 1, bound) << margin;
    }
  }
}

TEST(CrossEntropy, GivesMaskedLogitsNoProbability) {
  const double masked = -std::numeric_limits<double>::infinity();
  const Tensor logits = f64({1, 3}, {0, masked, 0});
  EXPECT_NEAR(cross_entropy(logits, i32({1}, {0})).item(), std::log(2), 1e-15);
  const auto grads = gradients(with_targets(i32({1}, {0})), {logits}, scalar(1, DType::f64));
  expect_close(grads[0], f64({1, 3}, {-0.5, 0, 0.5}));
}

TEST(CrossEntropy, PropagatesNaN) {
  for (std::int64_t position = 0; position < 20; ++position) {
    Tensor logits = normal({1, 20}, 1, DType::f32);
    logits.mutable_data<float>()[position] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(cross_entropy(logits, i32({1}, {3})).item())) << position;
  }
}

TEST(CrossEntropy, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tensor logits = normal({3000, 40}, 1, DType::f32), targets = random_targets(3000, 40);
  const WithThreads one(1);
  const Tensor loss = cross_entropy(logits, targets).value();
  for (const int threads : {2, 3}) {
    const WithThreads several(threads);
    EXPECT_TRUE(identical(cross_entropy(logits, targets).value(), loss)) << threads << " threads";
  }
}

TEST(CrossEntropy, NamesATargetOutOfRange) {
  EXPECT_THAT(
      [] {
        cross_entropy(normal({2, 3, 5}), i32({2, 3}, {0, 1, 2, 3, 4, 5}));
      },
      ThrowsMessage<ValueError>("cross_entropy: targets must lie in [0, 5) or equal ignore_index -100 but the "
                                "one at [1, 2] is 5"));
  EXPECT_THAT(
      [] {
        cross_entropy(normal({2, 5}), i32({2}, {-1, 0}), -7);
      },
      ThrowsMessage<ValueError>(
          "cross_entropy: targets must lie in [0, 5) or equal ignore_index -7 but the one at [0] is -1"));
}

TEST(CrossEntropy, RejectsTargetsThatDoNotFit) {
  EXPECT_THAT(
      [] {
        cross_entropy(normal({2, 3, 5}), i32({2}, {0, 1}));
      },
      ThrowsMessage<ShapeError>(
          "cross_entropy: targets must have shape [2, 3] to match logits [2, 3, 5] but have [2]"));
  EXPECT_THAT(
      [] {
        cross_entropy(normal({2, 5}), normal({2}));
      },
      ThrowsMessage<ShapeError>("cross_entropy: probabilities must have shape [2, 5] to match logits but have [2] "
                                "(classes have dtype i32)"));
  EXPECT_THAT(
      [] {
        cross_entropy(normal({2, 5}), normal({2, 5}, 0, DType::f32));
      },
      ThrowsMessage<DTypeError>("cross_entropy: inputs must have the same dtype but have f64 and f32"));
  EXPECT_THAT(
      [] {
        cross_entropy(i32({2}, {0, 1}), normal({2}));
      },
      ThrowsMessage<DTypeError>("cross_entropy: expected a floating-point tensor but has dtype i32"));
  EXPECT_THAT([] { cross_entropy(normal({}), i32({}, {0})); },
              ThrowsMessage<ShapeError>("cross_entropy: logits must have at least one axis but have shape []"));
}

/// The losses of rows [rows, V] by PyTorch's formulas, and what the mean divides their sum by. Targets are classes
/// [rows] or probabilities [rows, V].
std::pair<std::vector<double>, double> general_reference(const Tensor& logits, const Tensor& targets,
                                                         const CrossEntropySettings& settings) {
  const bool classes = targets.dtype() == DType::i32;
  const std::int64_t count = logits.size(1);
  const auto weight = [&](std::int64_t c) {
    return settings.class_weights.defined() ? settings.class_weights.at({c}) : 1.0;
  };
  std::vector<double> losses;
  double divisor = 0;
  for (std::int64_t i = 0; i < logits.size(0); ++i) {
    const std::int64_t target = classes ? static_cast<std::int64_t>(targets.at({i})) : 0;
    const bool counts = !classes || target != settings.ignore_index;
    double total = 0, loss = 0;
    for (std::int64_t c = 0; c < count; ++c) total += std::exp(logits.at({i, c}));
    for (std::int64_t c = 0; counts && c < count; ++c) {
      const double p = classes ? (c == target ? 1 : 0) : targets.at({i, c});
      const double smoothed =
          (1 - settings.label_smoothing) * p + settings.label_smoothing / static_cast<double>(count);
      loss += weight(c) * smoothed * (std::log(total) - logits.at({i, c}));
    }
    losses.push_back(loss);
    if (counts) divisor += classes ? weight(target) : 1;
  }
  return {losses, divisor};
}

std::vector<CrossEntropySettings> all_settings(const Tensor& class_weights) {
  std::vector<CrossEntropySettings> all;
  for (const double smoothing : {0.0, 0.1, 1.0})
    for (const Tensor& weights : {Tensor(), class_weights})
      for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none, Reduction::batch_mean})
        all.push_back({reduction, smoothing, weights, 2});
  return all;
}

const Tensor kWeights = f64({5}, {0.5, 2, 0, 1, 3});

Tensor probabilities(const Shape& shape) { return Tensor(softmax(normal(shape, 3))); }

TEST(CrossEntropySettings, MatchThePyTorchFormulas) {
  const Tensor logits = normal({6, 5}, 1), classes = i32({6}, {0, 4, 2, 1, 2, 3});
  for (const Tensor& targets : {classes, probabilities({6, 5})})
    for (const CrossEntropySettings& settings : all_settings(kWeights)) {
      const auto [losses, divisor] = general_reference(logits, targets, settings);
      const Tensor actual = cross_entropy(logits, targets, settings).value();
      if (settings.reduction == Reduction::none) {
        expect_close(actual, Tensor::of<double>({6}, std::span(losses)), 1e-13);
        continue;
      }
      const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
      const double by = settings.reduction == Reduction::sum ? 1 : settings.reduction == Reduction::mean ? divisor : 6;
      EXPECT_NEAR(actual.item(), sum / by, 1e-13);
    }
}

TEST(CrossEntropySettings, GradientsPassGradcheck) {
  const Tensor logits = normal({2, 3, 5}, 1), classes = i32({2, 3}, {0, 4, 2, 1, 2, 3});
  for (const CrossEntropySettings& settings : all_settings(kWeights)) {
    expect_gradients([&](auto x) { return cross_entropy(x[0], classes, settings); }, {logits});
    expect_gradients([&](auto x) { return cross_entropy(x[0], x[1], settings); }, {logits, probabilities({2, 3, 5})});
  }
}

TEST(CrossEntropySettings, LeaveOtherLayoutsAndSinglesAlike) {
  const Tensor logits = normal({5, 6}, 1).transpose(), classes = i32({6}, {0, 4, 2, 1, 2, 3});
  for (const Tensor& targets : {classes, probabilities({6, 5})})
    for (const CrossEntropySettings& settings : all_settings(kWeights)) {
      const Tensor expected = cross_entropy(logits.clone(), targets, settings).value();
      expect_close(cross_entropy(logits, targets, settings).value(), expected, 0);
      CrossEntropySettings single = settings;
      if (single.class_weights.defined()) single.class_weights = single.class_weights.to(DType::f32);
      const Tensor of_single = targets.dtype() == DType::i32 ? targets : targets.to(DType::f32);
      expect_close(cross_entropy(logits.to(DType::f32), of_single, single).value().to(DType::f64), expected, 1e-6);
    }
}

TEST(CrossEntropySettings, GiveIgnoredRowsNothingWhateverTheyHold) {
  const Tensor logits = f64({2, 2}, {1, 2, kNaN, kInfinity}), targets = i32({2}, {1, -100});
  for (const double smoothing : {0.0, 0.5}) {
    const CrossEntropySettings settings{.reduction = Reduction::none, .label_smoothing = smoothing};
    EXPECT_EQ(cross_entropy(logits, targets, settings).value().at({1}), 0);
    const auto f = [&](auto x) { return cross_entropy(x[0], targets, {.label_smoothing = smoothing}); };
    expect_close(gradients(f, {logits}, f64({}, {1}))[0].select(0, 1), f64({2}, {0, 0}));
  }
}

TEST(CrossEntropySettings, LetProbabilitiesOfZeroMeetMaskedLogits) {
  const Tensor logits = f64({1, 3}, {0, -kInfinity, 0}), p = f64({1, 3}, {0.25, 0, 0.75});
  EXPECT_NEAR(cross_entropy(logits, p).item(), std::log(2), 1e-15);
  expect_close(gradients([&](auto x) { return cross_entropy(x[0], p); }, {logits}, f64({}, {1}))[0],
               f64({1, 3}, {0.25, 0, -0.25}));
  const Composed composed;
  EXPECT_NEAR(cross_entropy(logits, p).item(), std::log(2), 1e-15);
}

TEST(CrossEntropySettings, AreZeroWhenNothingCounts) {
  for (const double smoothing : {0.0, 0.5}) {
    EXPECT_EQ(cross_entropy(normal({2, 5}), i32({2}, {-100, -100}), {.label_smoothing = smoothing}).item(), 0);
    EXPECT_EQ(cross_entropy(normal({0, 5}), i32({0}, {}), {.label_smoothing = smoothing}).item(), 0);
  }
  EXPECT_EQ(cross_entropy(normal({0, 5}), normal({0, 5})).item(), 0);
  EXPECT_EQ(cross_entropy(normal({2, 5}), i32({2}, {2, 2}), {.class_weights = kWeights}).item(), 0);
}

TEST(CrossEntropySettings, ThatAreWrongAreNamed) {
  const Tensor logits = normal({2, 5}), targets = i32({2}, {0, 1});
  for (const double wrong : {1.5, -0.1})
    EXPECT_THAT(
        [&] { cross_entropy(logits, targets, {.label_smoothing = wrong}); },
        ThrowsMessage<ValueError>(fmt::format("cross_entropy: label_smoothing must lie in [0, 1] but is {}", wrong)));
  EXPECT_THAT([&] { cross_entropy(logits, targets, {.class_weights = normal({4})}); },
              ThrowsMessage<ShapeError>(
                  "cross_entropy: class_weights must have shape [5] to match logits [2, 5] but have [4]"));
  EXPECT_THAT([&] { cross_entropy(logits, targets, {.class_weights = ones({5})}); },
              ThrowsMessage<DTypeError>("cross_entropy: inputs must have the same dtype but have f64 and f32"));
  EXPECT_THAT(
      [&] {
        cross_entropy(logits, ones({2, 5}), {.label_smoothing = 0.1});
      },
      ThrowsMessage<DTypeError>("cross_entropy: inputs must have the same dtype but have f64 and f32"));
}

}  // namespace
}  // namespace braid::op_tests::cross_entropy_test

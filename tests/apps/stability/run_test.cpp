#include <apps/stability/run.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <apps/stability/deep_mlp.h>
#include <apps/stability/probe.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/random.h>
#include <braid/nn/optim/adam.h>

namespace braid::stability {
namespace {

/// The losses of a run that takes the steps of run.h and docs/stability.md.
template <class Data>
std::vector<double> expected_losses(const TaskConfig& sizes, const RunSettings& run) {
  Rng rng(run.seed);
  Rng connection_rng = rng.split(), data_rng = rng.split(), batch_rng = rng.split();
  const Data data(sizes, data_rng);
  DeepMLP model = data.model(connection_config(run.mode, run.variant), rng, connection_rng);
  data.sample(batch_rng);  // for probes
  nn::AdamW optimizer({.lr = run.learning_rate, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0});
  std::vector<double> losses;
  for (std::int64_t step = 1; step <= sizes.steps; ++step) {
    const Batch batch = data.sample(batch_rng);
    const auto [loss, grads] = value_and_grad([&](const DeepMLP& m) {
      return Data::loss(forward(m, batch.inputs, [](const auto&) {}), batch.targets);
    })(model);
    losses.push_back(loss);
    const auto risen = static_cast<double>(std::min(step, sizes.warmup)) / static_cast<double>(sizes.warmup);
    optimizer.set_lr(run.learning_rate * risen);
    optimizer.step(model, grads);
  }
  return losses;
}

TEST(StabilityRun, TakesStepsOfAdamWAtARateThatRisesAndStaysWithoutDecayOrClipping) {
  TaskConfig sizes{};
  sizes.sublayers = 3, sizes.channels = 8, sizes.hidden = 8, sizes.batch = 4, sizes.steps = 10, sizes.warmup = 4;
  Config config{};
  config.divergence = 1e6, config.probe_every = 3;
  for (const Task task : {Task::mlp_regression, Task::mlp_classification}) {
    config.tasks[static_cast<std::size_t>(task)] = sizes;
    const RunSettings run{.task = task, .mode = Mode::mhc, .variant = {}, .learning_rate = 0.05, .seed = 3};
    std::stringstream lines;
    train_run(config, run, lines);
    std::vector<double> losses;
    for (std::string line; std::getline(lines, line);)
      if (const auto json = nlohmann::json::parse(line); json.contains("loss"))
        losses.push_back(json.at("loss").get<double>());
    const std::vector<double> expected = task == Task::mlp_regression ? expected_losses<TeacherStudent>(sizes, run)
                                                                      : expected_losses<Clusters>(sizes, run);
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]) << name(task) << ' ' << i;
  }
  EXPECT_TRUE(summary(Probe()).at("forward_gain").is_null());  // as before the first probe
}

TEST(StabilityRun, ClassifiesEightClassesOfFourNormalCloudsIn16Dimensions) {
  TaskConfig sizes{};
  sizes.batch = 4000;
  Rng rng(1), batch_rng(2), same(1);
  const Batch batch = Clusters(sizes, rng).sample(batch_rng);
  ASSERT_EQ(batch.inputs.shape(), (Shape{4000, 16}));
  const std::vector<double> centers = randn({32, 16}, same).to(DType::f64).to_vector<double>(),
                            points = batch.inputs.to(DType::f64).to_vector<double>();
  const std::vector<std::int32_t> labels = batch.targets.to_vector<std::int32_t>();
  std::set<std::size_t> seen;
  double squares = 0;
  int others = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t nearest = 0;
    for (std::size_t center = 0; center < 32; ++center) {
      double square = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        const double distance = points[16 * i + k] - centers[16 * center + k];
        square += distance * distance;
      }
      if (square < least) least = square, nearest = center;
    }
    seen.insert(nearest);
    squares += least;
    if (labels[i] != static_cast<std::int32_t>(nearest % 8)) ++others;
  }
  EXPECT_EQ(seen.size(), 32U);
  EXPECT_LT(others, 40);                 // clouds overlap a little
  EXPECT_NEAR(squares / 4000, 4, 0.15);  // 16 dimensions with a standard deviation of 0.5
}

}  // namespace
}  // namespace braid::stability

#include <apps/common/memory.h>

#include <gtest/gtest.h>

#include <braid/autograd/params.h>
#include <braid/autograd/tape.h>
#include <braid/core/storage.h>

#include <apps/common/trainer.h>

namespace braid::apps {
namespace {

struct Sizes {
  const char* name;
  TrainerSettings settings;
  std::int64_t vocab;
};

const Sizes kSizes[] = {
    {"residual", {.layers = 3, .channels = 64, .context = 32}, 100},
    {"wide vocabulary", {.layers = 1, .channels = 32, .context = 16}, 3000},
    {"long context", {.layers = 1, .channels = 32, .context = 1000}, 20},
    {"mhc", {.connection = {.kind = "mhc", .streams = 4}, .layers = 2, .channels = 64, .context = 32}, 50},
    {"eight streams", {.connection = {.kind = "mhc", .streams = 8}, .layers = 2, .channels = 32, .context = 32}, 50},
    {"experts", {.layers = 2, .channels = 48, .context = 32, .experts = 8, .experts_per_token = 3}, 50},
    {"lora", {.layers = 2, .channels = 64, .context = 32, .lora = 8}, 300},
    {"connections",
     {.connection = {.kind = "mhc", .streams = 4},
      .layers = 2,
      .channels = 64,
      .context = 32,
      .trained = Trained::connections},
     300},
    {"lora and connections",
     {.connection = {.kind = "mhc", .streams = 4},
      .layers = 2,
      .channels = 64,
      .context = 32,
      .lora = 4,
      .trained = Trained::connections},
     300},
};

double estimated(const Sizes& sizes, std::int64_t batch) {
  const TrainerSettings& s = sizes.settings;
  return least_bytes({.vocab = sizes.vocab,
                      .context = s.context,
                      .channels = s.channels,
                      .layers = s.layers,
                      .batch = batch,
                      .streams = s.connection.streams.value_or(1),
                      .experts = s.experts,
                      .experts_per_token = s.experts_per_token,
                      .lora = s.lora,
                      .connections_alone = s.trained == Trained::connections});
}

Model model_of(const Sizes& sizes) {
  Rng rng(1);
  return make_model(sizes.settings, sizes.vocab, rng);
}

/// What a forward pass leaves in memory for the backward pass.
double kept(const Sizes& sizes, std::int64_t batch) {
  Model model = model_of(sizes);
  Rng rng(2);
  const Shape shape{batch, sizes.settings.context};
  const Tensor tokens = randint(0, sizes.vocab, shape, rng), targets = randint(0, sizes.vocab, shape, rng);
  const std::int64_t before = memory_stats().live_bytes;
  Tape tape;
  for_each_param(model, [&](const std::string&, Var& p) { p = tape.watch(p.value()); });
  const Var loss = model.loss(tokens, targets);
  return static_cast<double>(memory_stats().live_bytes - before);
}

TEST(LeastMemory, HasFourCopiesOfTrainedParametersAndOneOfOthers) {
  for (const Sizes& sizes : kSizes) {
    const Model model = model_of(sizes);
    const auto all = static_cast<double>(num_params(model));
    const auto part = trained_part(model, sizes.settings);
    const double trained = part ? static_cast<double>(num_params(*part)) : all;
    EXPECT_NEAR(estimated(sizes, 0) / (4 * (all + 3 * trained)), 1, 0.04) << sizes.name;
  }
}

TEST(LeastMemory, OfABatchIsWhatItLeavesOrLess) {
  for (const Sizes& sizes : kSizes) {
    const double least = estimated(sizes, 3) - estimated(sizes, 1), actual = kept(sizes, 3) - kept(sizes, 1);
    EXPECT_LE(least, actual) << sizes.name;
    EXPECT_GE(least, 0.4 * actual) << sizes.name;
  }
}

TEST(LeastMemory, IsProportionalToTheBytesOfANumber) {
  const TrainingSizes sizes{.vocab = 10, .context = 8, .channels = 16, .layers = 1, .batch = 2, .streams = 1};
  TrainingSizes twice = sizes;
  twice.bytes = 8;
  EXPECT_EQ(least_bytes(twice), 2 * least_bytes(sizes));
}

TEST(Model, HasConnectionsThatFollowTheSeed) {
  TrainerSettings settings{.connection = {.kind = "mhc", .streams = 4}, .layers = 1, .channels = 16, .context = 8};
  const auto drawn = [&](std::uint64_t seed) {
    settings.seed = seed;
    Rng rng(7);
    return nn::to_tensors(make_model(settings, 10, rng)).at("blocks.0.attention.connection.phi");
  };
  EXPECT_TRUE(identical(drawn(1), drawn(1)));
  EXPECT_FALSE(identical(drawn(1), drawn(2)));
}

}  // namespace
}  // namespace braid::apps

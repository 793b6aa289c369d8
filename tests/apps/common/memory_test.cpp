#include <apps/common/memory.h>

#include <gmock/gmock.h>

#include <braid/autograd/params.h>
#include <braid/autograd/tape.h>
#include <braid/core/storage.h>

#include <apps/common/trainer.h>
#include <tests/support.h>

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

const Corpus& corpus() {
  static const Corpus text(std::string(500, 'a') + "bcdefghijklmnopqrstuvwxyz" + std::string(500, 'b'), 32);
  return text;
}

/// What three steps of all layers take.
double taken(const TrainerSettings& settings) {
  release_cached_memory();
  const double before = held_bytes();
  Trainer trainer(settings, corpus());
  for (int step = 0; step < 3; ++step) trainer.train_step();
  return held_bytes() - before;
}

std::string refusal(const TrainerSettings& settings, double available) {
  return message_of([&] { check_memory_of_steps(settings, corpus(), available); });
}

TEST(MemoryOfSteps, IsKnownFromStepsOfFewLayersWithinThreePercent) {
  const WithThreads one(1);  // so that steps hold as many blocks each time
  const auto with = [](ConnectionOptions connection, std::int64_t layers) {
    return TrainerSettings{
        .connection = std::move(connection), .layers = layers, .channels = 64, .context = 32, .batch = 4};
  };
  TrainerSettings bf16 = with({.kind = "mhc"}, 7), blocks = bf16, experts = with({}, 6), lora = experts, muon = experts;
  bf16.dtype = DType::bf16;
  blocks.blocks = 2;
  experts.experts = 4;
  lora.lora = 4;
  muon.optimizer = "muon";
  std::vector<TrainerSettings> all{bf16, blocks, experts, lora, muon};
  for (const std::string_view kind : mhc::connection_names()) all.push_back(with({.kind = std::string(kind)}, 6));
  for (const std::int64_t k : {2, 3, 4, 5}) all.push_back(with({.kind = "mhc", .keep_every = k}, 9));
  for (const std::int64_t k : {2, 3}) all.push_back(with({.kind = "attention-residual", .depth_block = k}, 9));
  for (const std::int64_t layers : {1, 2, 3, 4}) all.push_back(with({.kind = "mhc"}, layers));
  for (const TrainerSettings& settings : all) {
    SCOPED_TRACE(to_json(settings.connection).dump() + " " + std::to_string(settings.layers));
    const double bytes = taken(settings);
    EXPECT_THAT(refusal(settings, 0.97 * bytes), testing::StartsWith("steps of these sizes take "));
    EXPECT_EQ(refusal(settings, 1.03 * bytes), "nothing was thrown");
  }
}

TEST(MemoryOfSteps, IsNotAskedForWhereALowerBoundLeavesNoDoubt) {
  const TrainerSettings settings{.layers = 12, .channels = 64, .context = 32};
  const auto allocations_with = [&](double available) {
    release_cached_memory();
    const std::int64_t before = memory_stats().system_allocations;
    EXPECT_EQ(refusal(settings, available), "nothing was thrown");
    return memory_stats().system_allocations - before;
  };
  const double least = estimated({"", settings, corpus().vocab()}, settings.batch);
  EXPECT_EQ(allocations_with(4 * least), 0);
  EXPECT_GT(allocations_with(3.99 * least), 0);
}

TEST(MemoryOfSteps, IsRefusedWithWhatTakesLess) {
  TrainerSettings settings{.connection = {.kind = "mhc"}, .layers = 12, .channels = 64, .context = 32};
  const double bytes = taken(settings);
  EXPECT_THAT(refusal(settings, 0.9 * bytes),
              testing::MatchesRegex("steps of these sizes take .* GB but .* GB of memory are free; try "
                                    "--keep-every 4 \\(.* GB\\), more --blocks or a smaller --batch"));
  settings.connection.keep_every = 2;
  EXPECT_THAT(refusal(settings, 0.8 * bytes), testing::EndsWith("free; try more --blocks or a smaller --batch"));
  settings.connection = {};
  EXPECT_THAT(refusal(settings, 0.6 * taken(settings)),
              testing::EndsWith("free; try more --blocks or a smaller --batch"));
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

#include <braid/nn/lora.h>

#include <gmock/gmock.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/saving.h>
#include <braid/nn/sequential.h>
#include <braid/nn/subset.h>
#include <braid/nn/transformer.h>
#include <tests/nn/module_checks.h>

namespace braid::nn::lora_test {
namespace {

struct LoraOfAModel : testing::Test {
  Transformer<> trained(int steps) const {
    Transformer<> adapted = model;
    Rng draws(7);
    add_lora(adapted, draws, {.rank = 3, .alpha = 6});
    AdamW optimizer({.lr = 1e-2});
    for (int step = 0; step < steps; ++step) {
      Subset lora = subset(adapted, in_lora);
      auto [loss, grads] =
          value_and_grad([&](const Subset& s) { return with(adapted, s).loss(tokens, targets); })(lora);
      optimizer.step(lora, grads);
      adapted = with(std::move(adapted), lora);
    }
    return adapted;
  }

  Rng rng{5};
  Transformer<> model{{.vocab = 7, .context = 5, .channels = 8, .layers = 2, .heads = 2}, rng};
  Tensor tokens = randint(0, 7, {3, 5}, rng), targets = randint(0, 7, {3, 5}, rng);
};

TEST_F(LoraOfAModel, ChangesNothingAtItsStart) {
  Transformer<> adapted = model;
  EXPECT_EQ(add_lora(adapted, rng), 2 * 6 + 1);  // q, k, v, o, up and down, and the head
  EXPECT_TRUE(identical(adapted.logits(tokens).value(), model.logits(tokens).value()));
  EXPECT_EQ(adapted.head->lora->a.size(0), 8);
  std::int64_t of_lora = 0;
  for_each_param(adapted,
                 [&](const std::string& path, const Var& p) { of_lora += in_lora(path) ? p.value().numel() : 0; });
  EXPECT_EQ(of_lora, num_params(adapted) - num_params(model));
}

TEST_F(LoraOfAModel, TrainsAloneAndLeavesTheBase) {
  const Transformer<> adapted = trained(20);
  EXPECT_LT(adapted.loss(tokens, targets).item(), model.loss(tokens, targets).item() - 0.05);
  const NamedTensors before = to_tensors(model);
  for (const auto& [path, tensor] : to_tensors(adapted))
    EXPECT_TRUE(in_lora(path) || identical(tensor, before.at(path))) << path;
}

TEST_F(LoraOfAModel, MergesIntoTheSameFunction) {
  Transformer<> merged = trained(5);
  const Tensor expected = merged.logits(tokens).value();
  merge_lora(merged);
  EXPECT_EQ(parameter_names(merged), parameter_names(model));
  EXPECT_FALSE(identical(merged.logits(tokens).value(), model.logits(tokens).value()));
  expect_close(merged.logits(tokens).value(), expected, 1e-5);
}

TEST_F(LoraOfAModel, IsSavedAloneAndLoadedOntoTheBase) {
  const Transformer<> adapted = trained(3);
  const auto saved = to_tensors(subset(adapted, in_lora));
  Transformer<> loaded = model;
  add_lora(loaded, rng, {.rank = 3, .alpha = 6});
  Subset lora = subset(loaded, in_lora);
  from_tensors(lora, saved, "lora");
  loaded = with(std::move(loaded), lora);
  EXPECT_TRUE(identical(loaded.logits(tokens).value(), adapted.logits(tokens).value()));
}

TEST(Lora, IsAlphaOverRankTimesTheProduct) {
  Rng rng(1);
  Linear layer(4, 3, rng, {.dtype = DType::f64});
  const Linear base = layer;
  add_lora(layer, rng, {.rank = 2, .alpha = 5});
  layer.lora->b = randn({3, 2}, rng, DType::f64);
  EXPECT_EQ(layer.lora->a.shape(), (Shape{2, 4}));
  Linear changed = base;
  changed.weight = (base.weight + 2.5 * matmul(layer.lora->b, layer.lora->a)).value();
  const Tensor x = randn({6, 4}, rng, DType::f64);
  expect_close(layer(x).value(), changed(x).value());
  EXPECT_THAT(parameter_names(layer), testing::ElementsAre("weight", "bias", "lora.a", "lora.b"));
  expect_gradients(layer, [&](const Linear& m) { return m(x); });
  for (const std::int64_t rank : {1, 4, 8}) {
    Linear usual = base;
    add_lora(usual, rng, {.rank = rank});
    EXPECT_EQ(usual.lora->scale, 2) << rank;
  }
}

TEST(Lora, StartsWithinOneOverTheRootOfTheInputs) {
  Rng rng(2);
  Linear layer(100, 7, rng);
  add_lora(layer, rng, {.rank = 40});
  const auto values = layer.lora->a.value().to_vector<double>();
  EXPECT_LT(std::ranges::max(values), 0.1);
  EXPECT_GT(std::ranges::max(values), 0.099);
  EXPECT_LT(std::ranges::min(values), -0.099);
}

TEST(Lora, TakesTheLinearsThatAreChosen) {
  Rng rng(3);
  Sequential model(Linear(2, 4, rng), Linear(4, 4, rng), Linear(4, 1, rng));
  EXPECT_EQ(add_lora(model, rng, {.rank = 1, .chosen = [](auto path) { return path == "1"; }}), 1);
  EXPECT_FALSE(std::get<0>(model.layers).lora);
  EXPECT_TRUE(std::get<1>(model.layers).lora);
  expect_error<ValueError>([&] { add_lora(model, rng); }, "add_lora: 1 has one already");
  expect_error<ValueError>([&] { add_lora(model, rng, {.chosen = [](auto) { return false; }}); },
                           "add_lora: no Linear of the module is chosen");
  expect_error<ValueError>([&] { add_lora(model, rng, {.rank = 0}); }, "add_lora: rank must be at least 1 but is 0");
}

}  // namespace
}  // namespace braid::nn::lora_test

#include <braid/nn/subset.h>

#include <gmock/gmock.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/clip.h>
#include <braid/nn/saving.h>
#include <braid/nn/transformer.h>
#include <tests/support.h>

namespace braid::nn::subset_test {
namespace {

bool is_mlp(std::string_view path) { return path.find(".mlp.") != std::string_view::npos; }

struct SubsetOfAModel : testing::Test {
  double loss_of(const Transformer<>& m) const { return m.loss(tokens, targets).item(); }

  Rng rng{5};
  Transformer<> model{{.vocab = 7, .context = 5, .channels = 8, .layers = 2, .heads = 2}, rng};
  Tensor tokens = randint(0, 7, {3, 5}, rng), targets = randint(0, 7, {3, 5}, rng);
};

TEST_F(SubsetOfAModel, HasThePathsAndTheGradientsOfTheModel) {
  const Subset some = subset(model, is_mlp);
  EXPECT_EQ(some.parameters.size(), 10U);
  EXPECT_EQ(some.parameters.front().first, "blocks.0.mlp.norm.weight");
  const auto [loss, grads] =
      value_and_grad([&](const Subset& s) { return with(model, s).loss(tokens, targets); })(some);
  const auto [whole_loss, whole] =
      value_and_grad([&](const Transformer<>& m) { return m.loss(tokens, targets); })(model);
  EXPECT_EQ(loss, whole_loss);
  const NamedTensors expected = to_tensors(whole);
  for (const auto& [path, grad] : grads.parameters) EXPECT_TRUE(identical(grad.value(), expected.at(path))) << path;
}

TEST_F(SubsetOfAModel, TrainsAloneAndLeavesTheOtherBits) {
  const NamedTensors before = to_tensors(model);
  const double first = loss_of(model);
  AdamW optimizer({.lr = 1e-2, .weight_decay = 0.1});
  for (int step = 0; step < 20; ++step) {
    Subset some = subset(model, is_mlp);
    auto [loss, grads] = value_and_grad([&](const Subset& s) { return with(model, s).loss(tokens, targets); })(some);
    clip_grad_norm(grads, 1);
    optimizer.step(some, grads);
    model = with(std::move(model), some);
  }
  EXPECT_LT(loss_of(model), first - 0.05);
  for (const auto& [path, tensor] : to_tensors(model))
    EXPECT_EQ(identical(tensor, before.at(path)), !is_mlp(path)) << path;
  EXPECT_EQ(optimizer.state().size(), 1 + 2 * 10U);
}

TEST_F(SubsetOfAModel, RejectsPathsThatTheModelDoesNotHave) {
  Subset some = subset(model, is_mlp);
  some.parameters[3].first = "blocks.0.mlp.gate.weight";
  EXPECT_EQ(message_of([&] { with(model, some); }),
            "with: the module has no parameter blocks.0.mlp.gate.weight in this place");
  EXPECT_EQ(loss_of(with(model, Subset())), loss_of(model));
}

TEST(Subset, RejectsAChoiceOfNothing) {
  const std::vector<Var> list{ones({1}), ones({2})};
  EXPECT_EQ(message_of([&] { subset(list, [](std::string_view path) { return path == "wieght"; }); }),
            "subset: no parameter is chosen of 0 1");
}

}  // namespace
}  // namespace braid::nn::subset_test

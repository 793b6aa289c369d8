#include <braid/nn/optim/optimizer.h>

#include <gmock/gmock.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/nn/linear.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/sgd.h>
#include <braid/nn/transformer.h>
#include <tests/nn/module_checks.h>
#include <tests/support.h>

namespace braid::nn::optimizer_test {
namespace {

/// Parameters with names of their own.
struct Gate {
  Var kernel = ones({2, 2});
  Var scale = ones({2});

  void params(auto&& visit) {
    visit("kernel", kernel);
    visit("scale", scale);
  }
};

struct Pair {
  Linear a, b;

  explicit Pair(Rng& rng) : a(2, 2, rng), b(2, 2, rng) {}
  void params(auto&& visit) {
    visit("a", a);
    visit("b", b);
  }
};

template <Parametric M>
M zeros_like(M model) {
  for_each_param(model, [](const std::string&, Var& p) { p = zeros(p.shape(), p.dtype()); });
  return model;
}

/// What decay alone leaves of parameters that are 1.
std::pair<double, double> decayed(auto optimizer) {
  Gate gate;
  optimizer.step(gate, zeros_like(gate));
  return {gate.kernel.value().at({0, 0}), gate.scale.value().at({0})};
}

TEST(WeightDecay, ActsOnMatricesOfAnyNameByDefault) {
  EXPECT_EQ(decayed(AdamW({.lr = 0.5, .weight_decay = 0.5})), std::pair(0.75, 1.0));
  EXPECT_EQ(decayed(SGD({.lr = 0.5, .weight_decay = 0.5})), std::pair(0.75, 1.0));
}

TEST(WeightDecay, ActsOnWhatTheRuleChooses) {
  const auto by = [](DecayRule rule) { return decayed(AdamW({.lr = 0.5, .weight_decay = 0.5, .decays = rule})); };
  EXPECT_EQ(by(decay_weights_only), std::pair(1.0, 1.0));
  EXPECT_EQ(by(decay_everything), std::pair(0.75, 0.75));
  EXPECT_EQ(by([](std::string_view name, const Tensor&) { return name == "scale"; }), std::pair(1.0, 0.75));
}

TEST(WeightDecay, OfWeightsOnlyLeavesOutNormsBiasesAndPositions) {
  Rng rng(1);
  for (const NormKind norm : {NormKind::rms, NormKind::layer}) {
    const Transformer<> model({.channels = 8, .layers = 1, .norm = norm, .qk_norm = true, .attention_bias = true}, rng);
    int decaying = 0;
    for_each_param(model, [&](const std::string& name, const Var& p) {
      const bool is_norm = name.find("norm") != name.npos;
      EXPECT_EQ(decay_weights_only(name, p.value()), name.ends_with(".weight") && !is_norm) << name;
      decaying += decay_weights_only(name, p.value()) ? 1 : 0;
    });
    EXPECT_EQ(decaying, 8);  // embedding, q, k, v, o, up, down, head
  }
}

TEST(WeightDecay, IsThatOfPyTorchByDefault) {
  EXPECT_DOUBLE_EQ(AdamWSettings().weight_decay, 0.01);
  EXPECT_EQ(AdamSettings().weight_decay, 0);
  EXPECT_EQ(SGDSettings().weight_decay, 0);
  EXPECT_EQ(decayed(AdamW({.lr = 0.5})), std::pair(static_cast<double>(1 - 0.005f), 1.0));
  EXPECT_EQ(decayed(Adam({.lr = 0.5})), std::pair(1.0, 1.0));
}

TEST(TiedParameters, AreRefusedBeforeAnyWork) {
  Rng rng(1);
  Pair m(rng);
  m.b.weight = m.a.weight;
  const Pair grads = zeros_like(m);
  const Tensor before = m.a.bias.value();
  AdamW optimizer;
  EXPECT_EQ(message_of([&] { optimizer.step(m, grads); }),
            "AdamW: a.weight and b.weight are the same elements, and a step would untie them: use one field in both "
            "places, as nn::Transformer does with a tied head, or start from equal values with value().clone()");
  EXPECT_EQ(optimizer.steps(), 0);
  EXPECT_EQ(m.a.bias.value().bytes(), before.bytes());
  m.b.weight = m.a.weight.value().clone();
  optimizer.step(m, grads);
  EXPECT_EQ(optimizer.steps(), 1);
}

TEST(TiedParameters, AreFoundThroughATransposedView) {
  Rng rng(1);
  Pair m(rng);
  m.b.weight = m.a.weight.value().transpose();
  EXPECT_THAT(message_of([&] { SGD().step(m, zeros_like(m)); }),
              testing::StartsWith("SGD: a.weight and b.weight are the same elements"));
}

TEST(TiedParameters, AreNotPartsOfOneTensorNorCopiesOfAModel) {
  Rng rng(1);
  const Tensor fused = randn({4, 2}, rng);
  Pair m(rng);
  m.a.weight = fused.slice(0, 0, 2);
  m.b.weight = fused.slice(0, 2, 4);
  const Pair copy = m;
  SGD().step(m, zeros_like(m));
  EXPECT_TRUE(identical(m.b.weight.value(), copy.b.weight.value()));
  std::vector<Var> empty(2, zeros({0, 2}));
  SGD().step(empty, empty);
}

/// Momentum in the sign of the gradient, as an optimizer of a user's own.
class Signs : public Optimizer {
 public:
  explicit Signs(double lr) : Optimizer("Signs", lr, {"seen"}) {}

 private:
  void apply(const std::vector<Update>& updates, double grad_scale) override {
    for (const Update& u : updates) {
      u.state[0] = 0.5 * u.state[0] + grad_scale * u.grad;
      *u.value = *u.value - lr() * (u.decays ? 1.0 : 2.0) * u.state[0];
    }
  }
};

TEST(OwnOptimizers, StepAndContinueFromTheirStates) {
  Gate gate, resumed;
  const Gate grads;  // ones
  Signs first(0.1), second(0.1);
  first.step(gate, grads, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(gate.kernel.value().at({0, 0})), 0.8f);
  EXPECT_FLOAT_EQ(static_cast<float>(gate.scale.value().at({0})), 0.6f);
  resumed = gate;
  second.load_state(resumed, first.state());
  EXPECT_EQ(first.state().size(), 3U);
  EXPECT_TRUE(first.state().contains("seen.kernel"));
  first.step(gate, grads);
  second.step(resumed, grads);
  EXPECT_TRUE(identical(gate.kernel.value(), resumed.kernel.value()));
  expect_error<ValueError>([] { Signs(-1); }, "Signs: lr must be finite and at least 0 but is -1");
}

}  // namespace
}  // namespace braid::nn::optimizer_test

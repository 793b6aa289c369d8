#include <braid/autograd/params.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/value_and_grad.h>
#include <tests/support.h>

namespace braid::params_test {
namespace {

using testing::ElementsAre, testing::ThrowsMessage;

struct Affine {
  Var weight, bias;
  int setting = 3;
  void params(auto&& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

struct Network {
  std::vector<Affine> layers;
  std::vector<Var> scales;
  Affine head;
  void params(auto&& visit) {
    visit("layers", layers);
    visit("scales", scales);
    visit("head", head);
  }
};

Network network() {
  const Affine affine{ones({2, 3}), ones({3})};
  return {{affine, affine}, {ones({5})}, affine};
}

std::vector<std::string> names(auto&& module) {
  std::vector<std::string> list;
  for_each_param(module, [&](const std::string& name, const Var&) { list.push_back(name); });
  return list;
}

static_assert(Module<Affine> && Module<Network> && !Module<Var> && !Module<int>);
static_assert(Parametric<Var> && Parametric<const Network> && Parametric<std::vector<std::vector<Affine>>>);
static_assert(!Parametric<Tensor> && !Parametric<double> && !Parametric<std::vector<int>>);

TEST(Params, NamesArePathsInTheOrderOfVisits) {
  EXPECT_THAT(names(network()), ElementsAre("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
                                            "scales.0", "head.weight", "head.bias"));
}

TEST(Params, ConstModulesAreVisitedToo) {
  const Network module = network();
  EXPECT_THAT(names(module.head), ElementsAre("weight", "bias"));
  EXPECT_EQ(names(module).size(), 7U);
}

TEST(Params, AVariableIsItsOwnOnlyParameter) {
  Var x = ones({2});
  EXPECT_THAT(names(x), ElementsAre(""));
  std::vector<Var> list{x, x};
  EXPECT_THAT(names(list), ElementsAre("0", "1"));
}

TEST(Params, VisitorsMayReplaceParameters) {
  Network module = network();
  for_each_param(module, [](const std::string&, Var& v) { v = zeros(v.shape()); });
  EXPECT_EQ(module.layers[1].bias.value().at({0}), 0);
  EXPECT_EQ(module.layers[1].setting, 3);
}

TEST(Params, NamedParamsPointIntoTheModule) {
  Network module = network();
  const std::vector<NamedParam> params = named_params(module);
  ASSERT_EQ(params.size(), 7U);
  EXPECT_EQ(params[4].name, "scales.0");
  EXPECT_EQ(params[4].param, module.scales.data());
}

TEST(Params, AreCounted) {
  EXPECT_EQ(num_params(network()), 3 * 9 + 5);
  EXPECT_EQ(num_params(std::vector<Var>{}), 0);
}

struct Gated {
  std::array<Affine, 2> layers;
  std::optional<Affine> gate;
  std::vector<std::optional<Var>> scales;
  std::optional<std::array<Var, 1>> none;
  void params(auto&& visit) {
    visit("layers", layers);
    visit("gate", gate);
    visit("scales", scales);
    visit("none", none);
  }
};

static_assert(Parametric<Gated> && Parametric<const std::optional<Var>> && !Parametric<std::array<int, 2>>);

TEST(Params, FieldsMayBeArraysAndOptionals) {
  const Affine affine{ones({2, 3}), ones({3})};
  const Gated gated{.layers = {affine, affine}, .gate = affine, .scales = {Var(ones({1})), {}}, .none = {}};
  EXPECT_THAT(names(gated), ElementsAre("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
                                        "gate.weight", "gate.bias", "scales.0"));
  const auto step = value_and_grad([](const Gated& m) { return sum(m.layers[1].bias) + sum(m.gate->bias * 2.0); });
  const auto [loss, grads] = step(gated);
  EXPECT_EQ(loss, 9);
  EXPECT_EQ(grads.layers[1].bias.value().at({0}), 1);
  EXPECT_EQ(grads.gate->bias.value().at({0}), 2);
  EXPECT_FALSE(grads.none);
}

struct Twice {
  Var a, b;
  std::string second;
  void params(auto&& visit) {
    visit("w", a);
    visit(second, b);
  }
};

TEST(Params, RejectTwoFieldsUnderOneName) {
  const std::string message =
      "params: two fields are visited as 'w', and files and optimizers would keep only one of them";
  Twice twice{ones({2}), ones({2}), "w"};
  EXPECT_THAT([&] { names(twice); }, ThrowsMessage<Error>(message));
  EXPECT_THAT([&] { value_and_grad([](const Twice& m) { return sum(m.a * m.b); })(twice); },
              ThrowsMessage<Error>(message));
  EXPECT_THAT([&] { num_params(std::as_const(twice)); }, ThrowsMessage<Error>(message));
  EXPECT_THAT(names(Twice{ones({2}), ones({2}), "w2"}), ElementsAre("w", "w2"));
  const std::vector<Twice> list{{ones({2}), ones({2}), "w2"}, {ones({2}), ones({2}), "v"}};
  EXPECT_THAT(names(list), ElementsAre("0.w", "0.w2", "1.w", "1.v"));
}

}  // namespace
}  // namespace braid::params_test

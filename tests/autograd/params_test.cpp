#include <braid/autograd/params.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::params_test {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace braid::params_test

#include <braid/autograd/value_and_grad.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>
#include <tests/support.h>

namespace braid::value_and_grad_test {
namespace {

using testing::ElementsAre;

struct Affine {
  Var weight, bias;
  double scale = 1;
  Var operator()(const Var& x) const { return (x * weight + bias) * scale; }
  void params(auto&& visit) {
    visit("weight", weight);
    visit("bias", bias);
  }
};

Tensor pair(double a, double b) { return Tensor::of<double>({2}, {a, b}); }

TEST(ValueAndGrad, ReturnsTheValueAndAModuleOfGradients) {
  const Affine module{pair(2, 3), pair(5, 7), 10};
  auto step = value_and_grad([](const Affine& m, const Tensor& x) { return sum(m(x)); });
  const auto [loss, grads] = step(module, pair(11, 13));
  EXPECT_EQ(loss, 10 * (22 + 5 + 39 + 7));
  EXPECT_THAT(grads.weight.value().to_vector<double>(), ElementsAre(110, 130));
  EXPECT_THAT(grads.bias.value().to_vector<double>(), ElementsAre(10, 10));
  EXPECT_EQ(grads.scale, 10);
  EXPECT_FALSE(grads.weight.requires_grad());
}

TEST(ValueAndGrad, LeavesTheModuleAsItWas) {
  Affine module{pair(2, 3), pair(5, 7)};
  value_and_grad([](const Affine& m, const Tensor& x) { return sum(m(x)); })(module, pair(1, 1));
  EXPECT_FALSE(module.weight.requires_grad());
  module.weight.mutable_value().mutable_data<double>()[0] = 1;  // throws when the tape still shares it
}

TEST(ValueAndGrad, DifferentiatesVariablesAndVectors) {
  const auto [square, dx] = value_and_grad([](const Var& x) { return x * x; })(Var(scalar(3)));
  EXPECT_EQ(square, 9);
  EXPECT_EQ(dx.item(), 6);
  const std::vector<Var> xs{Var(scalar(2)), Var(scalar(5))};
  const auto [product, dxs] = value_and_grad([](const std::vector<Var>& x) { return x[0] * x[1]; })(xs);
  EXPECT_EQ(product, 10);
  EXPECT_EQ(dxs[0].item(), 5);
  EXPECT_EQ(dxs[1].item(), 2);
}

TEST(ValueAndGrad, GivesZerosForUnusedParameters) {
  const Affine module{pair(2, 3), pair(5, 7)};
  const auto [loss, grads] = value_and_grad([](const Affine& m) { return sum(m.weight); })(module);
  EXPECT_EQ(loss, 5);
  EXPECT_THAT(grads.bias.value().to_vector<double>(), ElementsAre(0, 0));
}

TEST(ValueAndGrad, ReturnsWhatComesWithTheLoss) {
  const Affine module{pair(2, 3), pair(5, 7)};
  const auto [loss, grads, y] = value_and_grad([](const Affine& m, const Tensor& x) {
    const Var y = m(x);
    return std::pair(sum(y), y);
  })(module, pair(11, 13));
  EXPECT_EQ(loss, 22 + 5 + 39 + 7);
  EXPECT_THAT(grads.weight.value().to_vector<double>(), ElementsAre(11, 13));
  EXPECT_THAT(y.value().to_vector<double>(), ElementsAre(27, 46));
  EXPECT_FALSE(y.requires_grad());
}

TEST(ValueAndGrad, WhatComesWithTheLossIsOffTheTape) {
  const auto f = [](const Affine& m) {
    return std::tuple(sum(m.weight), std::vector{m.weight * 2, m.bias}, m, 42, Tensor(pair(1, 2)));
  };
  const auto [loss, grads, list, module, number, tensor] = value_and_grad(f)(Affine{pair(2, 3), pair(5, 7)});
  for (const Var& v : {list[0], list[1], module.weight, module.bias}) EXPECT_FALSE(v.requires_grad());
  EXPECT_THAT(list[0].value().to_vector<double>(), ElementsAre(4, 6));
  EXPECT_EQ(number, 42);
  EXPECT_EQ(tensor.at({1}), 2);
}

TEST(ValueAndGrad, FreesTheTape) {
  const Tensor x = ones({1 << 16});
  const std::int64_t before = memory_stats().live_bytes;
  const auto [loss, dx, y] = value_and_grad([](const Var& v) {
    const Var y = v * v * v;
    return std::pair(sum(y), y);
  })(Var(x));
  EXPECT_LE(memory_stats().live_bytes, before + 2 * (4 << 16) + 4096);  // dx and y
}

TEST(ValueAndGrad, WantsAScalar) {
  EXPECT_EQ(message_of([] { value_and_grad([](const Var& x) { return x * 2.0; })(Var(ones({2}))); }),
            "value_and_grad: f must return a scalar but returned shape [2]");
  EXPECT_EQ(message_of([] { value_and_grad([](const Var& x) { return std::pair(x * 2.0, 1); })(Var(ones({2}))); }),
            "value_and_grad: f must return a scalar but returned shape [2]");
}

TEST(ValueAndGrad, TheSecondStepAsksNothingOfTheSystem) {
  const Affine module{ones({100, 30}), ones({30})};
  auto step = value_and_grad([](const Affine& m, const Tensor& x) { return sum(m(x)); });
  const Tensor x = ones({100, 30});
  step(module, x);
  const std::int64_t before = memory_stats().system_allocations;
  step(module, x);
  EXPECT_EQ(memory_stats().system_allocations, before);
}

TEST(Vjp, ReturnsTheCotangentsOfTheTensors) {
  const auto f = [](const Var& a, double factor, const Var& b) { return a * b * factor; };
  const auto [da, db] = vjp(f, pair(1, 10), pair(2, 3), 100.0, pair(5, 7));
  EXPECT_THAT(da.to_vector<double>(), ElementsAre(500, 7000));
  EXPECT_THAT(db.to_vector<double>(), ElementsAre(200, 3000));
}

TEST(Vjp, PassesModulesOn) {
  const Affine module{pair(2, 3), pair(5, 7)};
  const auto [dx] = vjp([](const Affine& m, const Var& x) { return m(x); }, pair(1, 1), module, pair(0, 0));
  EXPECT_THAT(dx.to_vector<double>(), ElementsAre(2, 3));
}

}  // namespace
}  // namespace braid::value_and_grad_test

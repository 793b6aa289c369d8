#include <braid/autograd/checkpoint.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/map.h>
#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::checkpoint_test {
namespace {

/// Several products, each of which saves its inputs.
struct Block {
  Var weight;
  Var operator()(const Var& x) const { return (x * weight + x) * (x * x) / (x * x + 1.0); }
  void params(auto&& visit) { visit("weight", weight); }
};

struct Network {
  std::vector<Block> blocks;
  bool recompute = false;
  Var operator()(Var x) const {
    for (const Block& block : blocks)
      x = recompute ? checkpoint([](const Block& b, const Var& in) { return b(in); }, block, x) : block(x);
    return x;
  }
  void params(auto&& visit) { visit("blocks", blocks); }
};

Network network(const Shape& shape, std::size_t depth, bool recompute) {
  Rng rng(1);
  Network module{{}, recompute};
  while (module.blocks.size() < depth) module.blocks.push_back({randn(shape, rng)});
  return module;
}

auto loss_and_grads(const Network& module, const Tensor& x) {
  return value_and_grad([](const Network& m, const Tensor& in) { return sum(m(in)); })(module, x);
}

TEST(Checkpoint, GivesTheSameBits) {
  Rng rng(2);
  const Tensor x = randn({5, 7}, rng);
  const auto [loss, grads] = loss_and_grads(network(x.shape(), 3, false), x);
  const auto [recomputed_loss, recomputed] = loss_and_grads(network(x.shape(), 3, true), x);
  EXPECT_EQ(recomputed_loss, loss);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(identical(recomputed.blocks[i].weight.value(), grads.blocks[i].weight.value()));
}

TEST(Checkpoint, KeepsLessMemory) {
  const Tensor x = ones({1 << 18});  // 1 MB
  const auto peak = [&](bool recompute) {
    const Network module = network(x.shape(), 8, recompute);
    const std::int64_t live = memory_stats().live_bytes;
    reset_peak_memory();
    loss_and_grads(module, x);
    return memory_stats().peak_bytes - live;
  };
  EXPECT_LT(peak(true), peak(false) / 2);
}

TEST(Checkpoint, RepeatsRandomNumbers) {
  Rng rng(3);
  const Tensor x = randn({100}, rng, DType::f64);
  const auto noisy = [](const Var& in, Rng noise) { return in * randn({100}, noise, DType::f64); };
  const auto [dx] = vjp([&](const Var& in) { return checkpoint(noisy, in, rng); }, ones({100}, DType::f64), x);
  EXPECT_TRUE(identical(dx, randn({100}, rng, DType::f64)));
}

TEST(Checkpoint, RejectsAFunctionThatGivesAnotherResultWhenItRunsAgain) {
  Rng rng(3);
  const auto noisy = [&](const Var& in) { return in * randn({10}, rng); };  // another draw for the gradient
  EXPECT_THAT(
      [&] { vjp([&](const Var& in) { return checkpoint(noisy, in); }, ones({10}), ones({10})); },
      testing::ThrowsMessage<Error>(
          "checkpoint: the function gave another result when it ran again for its gradient; does it change what "
          "it captures? Pass an Rng as an argument by value"));
}

TEST(Checkpoint, Nests) {
  const auto inner = [](const Var& x) { return x * x * x; };
  const auto outer = [&](const Var& x) { return checkpoint(inner, x) * x; };
  const auto [value, dx] =
      value_and_grad([&](const Var& x) { return checkpoint(outer, x); })(Var(scalar(2, DType::f64)));
  EXPECT_EQ(value, 16);
  EXPECT_EQ(dx.item(), 32);
}

TEST(Checkpoint, TakesConstantsSettingsAndIds) {
  const auto f = [](const Var& x, const Var& constant, const Var& ids, double factor) {
    return x * constant * factor * static_cast<double>(ids.size(0));
  };
  const Var constant = scalar(3), ids = zeros({5}, DType::i32);
  const auto [value, dx] =
      value_and_grad([&](const Var& x) { return checkpoint(f, x, constant, ids, 2.0); })(Var(scalar(7)));
  EXPECT_EQ(value, 210);
  EXPECT_EQ(dx.item(), 30);
}

TEST(Checkpoint, ComputesTheGradientsThatAreNeededOnly) {
  const auto f = [](const Var& x, const Var& constant) {
    return record("op", scalar(1), {x, constant}, [](const Tensor& dy, const Needs& needs) {
      EXPECT_TRUE(needs[0]);
      EXPECT_FALSE(needs[1]);
      return std::vector{dy, Tensor()};
    });
  };
  value_and_grad([&](const Var& x) { return checkpoint(f, x, Var(scalar(1))); })(Var(scalar(7)));
}

TEST(Checkpoint, OfConstantsRecordsNothing) {
  const Var y = checkpoint([](const Var& x) { return x * x; }, Var(scalar(3)));
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(y.item(), 9);
}

TEST(Checkpoint, RejectsACapturedVariable) {
  Tape tape;
  const Var x = tape.watch(scalar(1)), captured = tape.watch(scalar(1));
  EXPECT_EQ(message_of([&] { checkpoint([&](const Var& in) { return in * captured; }, x); }),
            "checkpoint: the function captures a variable that is on a tape, whose gradient would get lost; pass it as "
            "an argument");
}

}  // namespace
}  // namespace braid::checkpoint_test

// The communicator of this process alone, which needs no MPI.
#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/random.h>
#include <braid/dist/accumulate.h>
#include <braid/nn/linear.h>
#include <braid/nn/optim/accumulate.h>
#include <tests/support.h>

namespace braid::dist::single_process_test {
namespace {

TEST(SingleProcess, IsRank0Of1) {
  Communicator ranks;
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.size(), 1);
  EXPECT_EQ(ranks.sharing_processors(), 1);
  EXPECT_TRUE(ranks.any(true));
  EXPECT_FALSE(ranks.any(false));
  EXPECT_EQ(ranks.broadcast("bytes"), "bytes");
  EXPECT_EQ(ranks.gather("bytes"), std::vector<std::string>{"bytes"});
  ranks.check_same("text", "a");
  const Traffic none = ranks.traffic();
  for (const double cost : {none.bytes_sent, none.seconds_beside, none.seconds_after, none.seconds_open})
    EXPECT_EQ(cost, 0);
}

TEST(SingleProcess, AccumulatesTheBitsOfOptimAccumulate) {
  Communicator ranks;
  Rng rng(3);
  const nn::Linear model(5, 3, rng);
  for (const std::int64_t blocks : {1, 2, 5, 8}) {
    const Tensor x = randn({blocks, 7, 5}, rng);
    const auto loss = [&](const nn::Linear& m, std::int64_t block) { return mean(tanh(m(x.select(0, block)))); };
    auto [expected_loss, expected] = nn::accumulate(blocks, [&](std::int64_t block) {
      return value_and_grad([&](const nn::Linear& m) { return loss(m, block); })(model);
    });
    auto [actual_loss, actual] = accumulate(ranks, blocks, model, loss);
    EXPECT_EQ(actual_loss, expected_loss);
    EXPECT_TRUE(identical(actual.weight.value(), expected.weight.value()));
    EXPECT_TRUE(identical(actual.bias.value(), expected.bias.value()));
  }
}

TEST(SingleProcess, RejectsNoBlocksAndLossesThatAreNoScalars) {
  Communicator ranks;
  const Var model(ones({3}));
  const auto run = [&](std::int64_t blocks) {
    accumulate(ranks, blocks, model, [](const Var& w, std::int64_t) { return w * 2; });
  };
  EXPECT_EQ(message_of([&] { run(0); }), "dist: 0 blocks are too few for 1 ranks");
  EXPECT_EQ(message_of([&] { run(1); }), "accumulate: the loss must be a scalar but has shape [3]");
}

TEST(SingleProcessDeathTest, FailsWithOneLineAndTheExitCode) {
  EXPECT_EXIT(Communicator().fail("the loss is not finite", 3), testing::ExitedWithCode(3),
              "^the loss is not finite\n$");
}

}  // namespace
}  // namespace braid::dist::single_process_test

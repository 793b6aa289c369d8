// Memory may run out at any tensor of a training run. The exception arrives where the step was called, all memory
// comes back, and the model and its optimizer are those before the step or those after it.

#include <filesystem>
#include <new>
#include <string>
#include <typeinfo>

#include <gtest/gtest.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/core/storage.h>
#include <braid/nn/clip.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/sgd.h>
#include <braid/nn/saving.h>
#include <braid/nn/transformer.h>
#include <tests/failing_allocations.h>
#include <tests/support.h>

namespace braid::nn {
namespace {

namespace fs = std::filesystem;

void expect_same(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(identical(tensor, b.at(name))) << name;
}

template <class Optimizer>
struct Training {
  Rng rng{1};
  Transformer<> model{{.vocab = 11, .context = 6, .channels = 8, .layers = 2, .heads = 2}, rng};
  Optimizer optimizer;
  Tensor tokens = randint(0, 11, {3, 6}, rng), targets = randint(0, 11, {3, 6}, rng);

  void step() {
    auto [loss, grads] = value_and_grad([&](const Transformer<>& m) { return m.loss(tokens, targets); })(model);
    clip_grad_norm(grads, 0.01);
    optimizer.step(model, grads);
  }

  NamedTensors tensors() const {
    NamedTensors all = to_tensors(model);
    for (const auto& [name, tensor] : optimizer.state()) all.emplace("optimizer." + name, tensor);
    return all;
  }
};

/// Lets each allocation of `act` fail, all later ones with it, until there are none left. `check` sees what was left.
void for_each_failure(const auto& prepare, const auto& act, const auto& check) {
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    auto run = prepare();
    const std::int64_t live = memory_stats().live_bytes;
    release_cached_memory();
    {
      const FailingAllocations faults({.after = failures, .times = 1 << 20});
      try {
        act(run);
      } catch (const std::bad_alloc&) {
        ASSERT_TRUE(faults.failed());
      }
      failed = faults.failed();
    }
    SCOPED_TRACE(failures);
    check(run, failed, memory_stats().live_bytes - live);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(failures, 2);
}

template <class Optimizer>
struct AllocationFaults : testing::Test {
  static Training<Optimizer> after_steps(int steps) {
    Training<Optimizer> run{.optimizer = Optimizer({.lr = 0.1})};
    for (int i = 0; i < steps; ++i) run.step();
    return run;
  }
};

struct Momentum : SGD {
  explicit Momentum(SGDSettings settings) : SGD((settings.momentum = 0.9, settings)) {}
};

using Optimizers = testing::Types<SGD, Momentum, AdamW>;
TYPED_TEST_SUITE(AllocationFaults, Optimizers);

TYPED_TEST(AllocationFaults, LeaveTheStateBeforeOrAfterAStep) {
  for (const int threads : {1, 3})
    for (const int steps : {0, 1}) {  // the first step makes the optimizer's state
      const WithThreads with_threads(threads);
      const auto before = this->after_steps(steps), after = this->after_steps(steps + 1);
      for_each_failure([&] { return this->after_steps(steps); }, [](auto& run) { run.step(); },
                       [&](auto& run, bool failed, std::int64_t leaked) {
                         const auto& expected = failed ? before : after;
                         expect_same(to_tensors(run.model), to_tensors(expected.model));
                         EXPECT_EQ(run.optimizer.steps(), expected.optimizer.steps());
                         if (!failed) return;
                         if (steps > 0) {
                           expect_same(run.optimizer.state(), before.optimizer.state());
                           EXPECT_EQ(leaked, 0);
                         }
                         run.step();  // goes on as if nothing had been
                         expect_same(to_tensors(run.model), to_tensors(after.model));
                         expect_same(run.optimizer.state(), after.optimizer.state());
                       });
    }
}

TYPED_TEST(AllocationFaults, LeaveTheOldFileOfASave) {
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_faults_" + std::string(typeid(TypeParam).name()));
  fs::create_directories(folder);
  const fs::path file = folder / "data";
  const auto before = this->after_steps(1);
  for_each_failure(
      [&] {
        save_safetensors(file, before.tensors());
        auto run = this->after_steps(2);
        for_each_param(run.model, [](const std::string&, Var& p) {  // saving copies them
          if (p.rank() == 2) p = p.value().transpose().clone().transpose();
        });
        return run;
      },
      [&](const auto& run) { save_safetensors(file, run.tensors()); },
      [&](const auto& run, bool failed, std::int64_t leaked) {
        expect_same(load_safetensors(file).tensors, failed ? before.tensors() : run.tensors());
        EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
        EXPECT_EQ(leaked, 0);
      });
  fs::remove_all(folder);
}

TEST(AllocationFaultsOfLoading, LeaveTheModule) {
  Rng rng(3);
  const Linear saved(5, 4, rng);
  const NamedTensors tensors = to_tensors(saved);
  for_each_failure(
      [&] {
        Rng other(4);
        return Linear(5, 4, other, {.dtype = DType::f64});
      },
      [&](Linear& module) { from_tensors(module, tensors); },
      [&](const Linear& module, bool failed, std::int64_t leaked) {
        Rng other(4);
        const Linear before(5, 4, other, {.dtype = DType::f64});
        const Tensor expected = failed ? before.weight.value() : saved.weight.value().to(DType::f64);
        EXPECT_TRUE(identical(module.weight.value(), expected));
        EXPECT_EQ(leaked, 0);
      });
}

}  // namespace
}  // namespace braid::nn

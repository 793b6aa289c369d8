// Memory may run out at any allocation of a training run. The exception arrives where the step was called, all memory
// comes back, and the model and its optimizer are those before the step or those after it.

#include <array>
#include <filesystem>
#include <new>
#include <string>
#include <typeinfo>

#include <gtest/gtest.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/core/storage.h>
#include <braid/nn/optim/adafactor.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/clip.h>
#include <braid/nn/optim/lion.h>
#include <braid/nn/optim/muon.h>
#include <braid/nn/optim/sgd.h>
#include <braid/nn/saving.h>
#include <braid/nn/transformer.h>
#include <tests/failing_allocations.h>
#include <tests/support.h>

namespace braid::nn::allocation_faults_test {
namespace {

namespace fs = std::filesystem;

void expect_same(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(identical(tensor, b.at(name))) << name;
}

template <class Optimizer>
struct Training {
  int layers = 2;
  Rng rng{1};
  Transformer<> model{{.vocab = 11, .context = 6, .channels = 8, .layers = layers, .heads = 2}, rng};
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

struct Faults {
  int times = 1 << 20;  // from the one that fails on
  bool all = false;     // not only tensor storage
};

/// Lets each allocation of `act` fail, those after it with it, until there are none left. `check` sees what was left
/// and whether it failed; when that is gone, all memory has come back.
void for_each_failure(const auto& prepare, const auto& act, const auto& check, Faults which = {}) {
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    SCOPED_TRACE(failures);
    const std::int64_t live = memory_stats().live_bytes;
    {
      auto run = prepare();
      bool threw = false;
      release_cached_memory();
      {
        const FailingAllocations faults({.after = failures, .times = which.times, .all = which.all});
        try {
          act(run);
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        failed = faults.failed();
      }
      ASSERT_TRUE(failed || !threw);
      check(run, threw);
    }
    EXPECT_EQ(memory_stats().live_bytes, live);
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

struct MuonOfRate : Muon {
  explicit MuonOfRate(AdamWSettings settings) : Muon({.adamw = settings}) {}
};

using Optimizers = testing::Types<SGD, Momentum, AdamW, MuonOfRate, Lion, Adafactor>;
TYPED_TEST_SUITE(AllocationFaults, Optimizers);

TYPED_TEST(AllocationFaults, LeaveTheStateBeforeOrAfterAStep) {
  for (const int threads : {1, 3})
    for (const int steps : {0, 1}) {  // the first step makes the optimizer's state
      const WithThreads with_threads(threads);
      const auto before = this->after_steps(steps), after = this->after_steps(steps + 1);
      for_each_failure([&] { return this->after_steps(steps); }, [](auto& run) { run.step(); },
                       [&](auto& run, bool failed) {
                         const auto& expected = failed ? before : after;
                         expect_same(to_tensors(run.model), to_tensors(expected.model));
                         EXPECT_EQ(run.optimizer.steps(), expected.optimizer.steps());
                         if (!failed) return;
                         if (steps > 0) expect_same(run.optimizer.state(), before.optimizer.state());
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
      [&](const auto& run, bool failed) {
        expect_same(load_safetensors(file).tensors, failed ? before.tensors() : run.tensors());
        EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
      });
  fs::remove_all(folder);
}

constexpr std::array<Faults, 2> kAnyKind = {{{.times = 1, .all = true}, {.all = true}}};

struct AllocationFaultsOfAnyKind : testing::Test {
  AllocationFaultsOfAnyKind() {
    before.step();
    after = before;
    after.step();
  }

  const WithThreads one{1};
  Training<AdamW> before{.layers = 1, .optimizer = AdamW({.lr = 0.1})}, after = before;
};

// oneDNN does not come back from a failure while it generates code, when it is first used: the steps before have done
// that.
TEST_F(AllocationFaultsOfAnyKind, LeaveTheStateBeforeOrAfterAStep) {
  for (const Faults& faults : kAnyKind)
    for_each_failure([&] { return before; }, [](auto& run) { run.step(); },
                     [&](auto& run, bool failed) {
                       expect_same(run.tensors(), (failed ? before : after).tensors());
                       if (failed) run.step();  // goes on as if nothing had been
                       expect_same(run.tensors(), after.tensors());
                     },
                     faults);
}

// A whole file is not loaded or saved like this: nlohmann::json allocates in its destructors, which are noexcept, so
// that a failure there ends the process. What does without JSON is write_file_atomically, in core, and this.
TEST_F(AllocationFaultsOfAnyKind, LeaveWhatIsLoadedAsItWasOrLoaded) {
  const NamedTensors parameters = to_tensors(after.model), moments = after.optimizer.state();
  for (const Faults& faults : kAnyKind) {
    for_each_failure([&] { return before; }, [&](auto& run) { from_tensors(run.model, parameters); },
                     [&](const auto& run, bool failed) {
                       expect_same(to_tensors(run.model), to_tensors((failed ? before : after).model));
                     },
                     faults);
    for_each_failure([&] { return before; }, [&](auto& run) { run.optimizer.load_state(run.model, moments); },
                     [&](const auto& run, bool failed) {
                       expect_same(run.optimizer.state(), (failed ? before : after).optimizer.state());
                     },
                     faults);
  }
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
      [&](const Linear& module, bool failed) {
        Rng other(4);
        const Linear before(5, 4, other, {.dtype = DType::f64});
        const Tensor expected = failed ? before.weight.value() : saved.weight.value().to(DType::f64);
        EXPECT_TRUE(identical(module.weight.value(), expected));
      });
}

}  // namespace
}  // namespace braid::nn::allocation_faults_test

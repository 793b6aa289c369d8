// Part of every test program: each test leaves the settings of the process as it found them, so that tests pass in any
// order.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include <braid/core/batch_invariant.h>
#include <braid/core/instruction_set.h>
#include <braid/core/parallel.h>
#include <braid/core/products/matmul_precision.h>

namespace braid {
namespace {

struct Settings {
  int threads = num_threads();
  InstructionSet set = instruction_set();
  bool invariant = BatchInvariant::active();
  MatmulPrecision precision = matmul_precision();
  std::filesystem::path folder = std::filesystem::current_path();
  std::set<std::string> environment = variables();

  static std::set<std::string> variables() {
    std::set<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) all.insert(*variable);
    return all;
  }
};

class LeavesNoTrace : public testing::EmptyTestEventListener {
  /// Not in the process of a death test, which may be about the first call that asks for such a setting.
  void OnTestStart(const testing::TestInfo&) override {
    if (!testing::internal::InDeathTestChild()) before_.emplace();
  }

  void OnTestEnd(const testing::TestInfo&) override {
    if (!before_) return;
    const Settings now;
    EXPECT_EQ(now.threads, before_->threads) << "the test left another number of threads";
    EXPECT_TRUE(now.set == before_->set) << "the test left another instruction set";
    EXPECT_EQ(now.invariant, before_->invariant) << "the test left another batch invariance";
    EXPECT_TRUE(now.precision == before_->precision) << "the test left another precision of products";
    EXPECT_EQ(now.folder, before_->folder) << "the test left another working directory";
    EXPECT_EQ(now.environment, before_->environment) << "the test left another environment";
  }

  std::optional<Settings> before_;
};

[[maybe_unused]] const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new LeavesNoTrace);
  return true;
}();

}  // namespace
}  // namespace braid

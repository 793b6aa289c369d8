// Appended to a file of every test program: writes, for each test, its name, its seconds and the mutants it reached into
// the file BRAID_MUTANT_TESTS.
#include <gtest/gtest.h>

#include <cstdio>

namespace {

class WritesReachedMutants : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { forget(); }

  void OnTestEnd(const testing::TestInfo& test) override {
    const BraidMutants& mutants = BraidMutants::get();
    std::FILE* file = std::fopen(std::getenv("BRAID_MUTANT_TESTS"), "a");
    std::fprintf(file, "%s.%s %d %.3f", test.test_suite_name(), test.name(), test.result()->Failed() ? 1 : 0,
                 static_cast<double>(test.result()->elapsed_time()) / 1000);
    for (long number = 0; number < mutants.size; ++number) {
      if (mutants.reached[number]) std::fprintf(file, " %ld", number);
    }
    std::fputc('\n', file);
    std::fclose(file);
  }

  static void forget() {
    const BraidMutants& mutants = BraidMutants::get();
    for (long number = 0; number < mutants.size; ++number) mutants.reached[number] = 0;
  }
};

[[maybe_unused]] const bool listens = [] {
  if (std::getenv("BRAID_MUTANT_TESTS")) testing::UnitTest::GetInstance()->listeners().Append(new WritesReachedMutants);
  return true;
}();

}  // namespace

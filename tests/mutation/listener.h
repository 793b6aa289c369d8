// Appended to a file of every test program: writes, for each test, its name, its seconds and the mutants it reached
// into the file BRAID_MUTANT_TESTS.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

class WritesReachedMutants : public testing::EmptyTestEventListener {
  /// What is reached before the first test, in the initialization of constants, counts for all of them.
  void OnTestProgramStart(const testing::UnitTest&) override { always_ = reached(); }

  void OnTestStart(const testing::TestInfo&) override {
    const BraidMutants& mutants = BraidMutants::get();
    for (long number = 0; number < mutants.size; ++number) mutants.reached[number] = 0;
    for (const long number : always_) mutants.reached[number] = 1;
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    std::FILE* file = std::fopen(std::getenv("BRAID_MUTANT_TESTS"), "a");
    std::fprintf(file, "%s.%s %d %.3f", test.test_suite_name(), test.name(), test.result()->Failed() ? 1 : 0,
                 static_cast<double>(test.result()->elapsed_time()) / 1000);
    for (const long number : reached()) std::fprintf(file, " %ld", number);
    std::fputc('\n', file);
    std::fclose(file);
  }

  static std::vector<long> reached() {
    const BraidMutants& mutants = BraidMutants::get();
    std::vector<long> numbers;
    for (long number = 0; number < mutants.size; ++number) {
      if (mutants.reached[number]) numbers.push_back(number);
    }
    return numbers;
  }

  std::vector<long> always_;
};

[[maybe_unused]] const bool writes = [] {
  if (std::getenv("BRAID_MUTANT_TESTS")) testing::UnitTest::GetInstance()->listeners().Append(new WritesReachedMutants);
  return true;
}();

}  // namespace

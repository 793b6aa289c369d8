#include <braid/core/instruction_set.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/error.h>
#include <braid/core/kernels/elements.h>
#include <braid/core/platform/machine.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul.h>
#include <braid/core/products/matmul_precision.h>
#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::instruction_set_test {
namespace {

using Set = InstructionSet;

constexpr Set kAll[] = {Set::baseline, Set::avx2, Set::avx512, Set::amx, Set::neon};

bool has(Set set) { return std::ranges::find(instruction_sets(), set) != instruction_sets().end(); }

std::string refusal(std::string_view what, std::string_view text) {
  std::string names;
  for (const Set set : instruction_sets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(set));
  return fmt::format("{}: must be one of {} on this processor but is '{}'", what, names, text);
}

/// The kernel that rounds to bf16: another address for every target.
auto rounding_code() { return kernels::element_kernels().round; }

double distance(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
}

TEST(InstructionSet, HasAName) {
  const std::vector<std::string> names{"baseline", "avx2", "avx512", "amx", "neon"};
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(name(kAll[i]), names[i]);
  EXPECT_EQ(message_of([] { name(static_cast<Set>(5)); }), "InstructionSet: 5 is not an instruction set");
  EXPECT_THROW(name(static_cast<Set>(-1)), ValueError);
}

TEST(InstructionSet, OfAProcessorBeginsWithTheBaseline) {
  EXPECT_EQ(instruction_sets().front(), Set::baseline);
#if defined(__x86_64__)
  EXPECT_TRUE(std::ranges::is_sorted(instruction_sets()));
  EXPECT_FALSE(has(Set::neon));
#elif defined(__aarch64__)
  EXPECT_THAT(instruction_sets(), testing::ElementsAre(Set::baseline, Set::neon));
#endif
}

TEST(InstructionSet, ThatTheProcessorLacksIsRefused) {
  const Set before = instruction_set();
  for (const Set set : kAll) {
    if (has(set)) continue;
    EXPECT_EQ(message_of([&] { set_instruction_set(set); }), refusal("set_instruction_set", name(set)));
  }
  EXPECT_EQ(message_of([] { set_instruction_set(static_cast<Set>(5)); }),
            "InstructionSet: 5 is not an instruction set");
  EXPECT_EQ(instruction_set(), before);
}

TEST(InstructionSet, DecidesWhichKernelsRun) {
  std::optional<decltype(rounding_code())> before;
  for (const Set set : instruction_sets()) {
    const WithInstructionSet guard(set);
    EXPECT_EQ(instruction_set(), set);
#if defined(__x86_64__)
    if (set == Set::baseline) {
      EXPECT_THAT(std::string(kernel_target()), testing::AnyOf("SSE2", "EMU128"));  // an older Highway's
    }
#endif
    if (set == Set::avx2) {
      EXPECT_STREQ(kernel_target(), "AVX2");
      EXPECT_NE(rounding_code(), *before);
    }
    if (set == Set::avx512) {
      EXPECT_STRNE(kernel_target(), "AVX2");
    }
    before = rounding_code();
  }
}

TEST(Machine, NamesItsProcessorAsTheSystemDoes) {
  std::stringstream text;
  text << std::ifstream("/proc/cpuinfo").rdbuf();
  const auto says = [&](const std::string& words) { return text.str().find(words) != std::string::npos; };
  EXPECT_EQ(says("model name\t: " + platform::processor_name() + "\n"), says("model name"));
}

TEST(InstructionSet, DecidesWhatMultipliesBF16) {
  for (const Set set : instruction_sets()) {
    const WithInstructionSet guard(set);
    const std::string unit = bf16_products();
    if (set == Set::amx) {
      EXPECT_EQ(unit, "AMX");
    } else if (set == Set::avx512) {
      EXPECT_EQ(unit, platform::has_fast_avx512_bf16() ? "AVX512_BF16" : "f32");
    } else {
      EXPECT_EQ(unit, "f32");
    }
    EXPECT_EQ(bf16_terms_per_f32() == 3, set == Set::amx);
  }
}

// Back and forth: oneDNN keeps to the first set that it multiplies under.
TEST(InstructionSet, ChangesResultsByRoundingOnly) {
  Rng rng(1);
  const Tensor a = randn({150, 90}, rng, DType::f64), b = randn({90, 170}, rng, DType::f64);
  const Tensor product = matrix_product(a, b);
  std::vector<Set> sets = instruction_sets();
  for (int round = 0; round < 3; ++round, std::ranges::reverse(sets)) {
    for (const Set set : sets) {
      const WithInstructionSet guard(set);
      SCOPED_TRACE(name(set));
      for (const auto& [dtype, tolerance] : {std::pair{DType::f64, 1e-13}, {DType::f32, 5e-5}, {DType::bf16, 0.5}})
        EXPECT_LT(distance(matrix_product(a.to(dtype), b.to(dtype)), product), tolerance) << name(dtype);
    }
  }
}

// oneDNN needs SSE4.1 and sums in another order.
TEST(InstructionSet, OfTheBaselineMultipliesByThePackedProduct) {
  if (instruction_sets().size() == 1) GTEST_SKIP() << "oneDNN uses what there is";
  const WithInstructionSet guard(Set::baseline);
  Rng rng(2);
  const Tensor a = randn({150, 390}, rng), b = randn({390, 170}, rng), product = matrix_product(a, b);
  const BatchInvariant packed;
  EXPECT_EQ(product.to_vector<float>(), matrix_product(a, b).to_vector<float>());
}

// A process of its own reads the variable: these tests run themselves anew.
class Environment : public testing::Test {
 protected:
  void SetUp() override {
#ifdef BRAID_EMULATED
    GTEST_SKIP() << "an emulated program does not start itself";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }

  /// Runs `call` in a new process, where BRAID_ISA has a value or is not set.
  static void expect_with(const char* value, const std::function<bool()>& call) {
    EXPECT_EXIT(
        {
          value != nullptr ? setenv("BRAID_ISA", value, 1) : unsetenv("BRAID_ISA");
          std::exit(call() ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << (value != nullptr ? value : "not set");
  }
};

TEST_F(Environment, ChoosesTheInstructionSet) {
  expect_with(nullptr, [] { return instruction_set() == instruction_sets().back(); });
  for (const Set set : instruction_sets())
    expect_with(std::string(name(set)).c_str(), [set] {
      const auto first = rounding_code();  // before anything else asks for the instruction set
      set_instruction_set(set);
      return first == rounding_code() && instruction_set() == set;
    });
}

#if defined(__x86_64__)
TEST_F(Environment, HasTheSetsThatHighwayFinds) {
  for (const auto& [targets, best] : {std::pair{std::int64_t{HWY_EMU128}, Set::baseline},
                                      {HWY_EMU128 | HWY_AVX2, Set::avx2},
                                      {HWY_EMU128 | HWY_AVX2 | HWY_AVX3, Set::avx512}})
    expect_with(nullptr, [targets = targets, best = best] {
      hwy::SetSupportedTargetsForTest(targets);
      return has(Set::avx2) == (best >= Set::avx2) && has(Set::avx512) == (best >= Set::avx512);
    });
}
#endif

TEST_F(Environment, IsReadOnce) {
  expect_with("baseline", [] {
    const auto first = rounding_code();
    setenv("BRAID_ISA", "none", 1);
    return first == rounding_code() && instruction_set() == Set::baseline;
  });
}

TEST_F(Environment, IsRefusedByTheFirstOpAndByEveryLaterOne) {
  std::vector<std::string> refused{"", "AVX2", "avx2 ", " avx2", "avx", "sse2", "baseline,avx2"};
  for (const Set set : kAll)
    if (!has(set)) refused.emplace_back(name(set));
  for (const std::string& text : refused)
    expect_with(text.c_str(), [&text] {
      const std::string expected = refusal("BRAID_ISA", text);
      const Tensor x = ones({64, 64});
      return message_of([&] { x.to(DType::bf16); }) == expected &&
             message_of([&] { matrix_product(x, x); }) == expected &&
             message_of([] { instruction_set(); }) == expected &&
             message_of([] { set_instruction_set(Set::baseline); }) == expected;
    });
}

}  // namespace
}  // namespace braid::instruction_set_test

#include <braid/autograd/verify/gradcheck.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/core/random.h>

namespace braid::wrong_factors_test {
namespace {

/// A function at a point where differences are hard to take.
struct HardPoint {
  const char* name;
  Var (*f)(const Var&);
  std::vector<double> x;
  bool checked = true;  // whether gradcheck can tell that the gradient is right
};

template <int kExponent>
Var shifted_tanh(const Var& x) {
  return tanh(std::pow(10, kExponent) * (x - 1));
}

template <int kExponent>
Var oscillation(const Var& x) {
  return sin(std::pow(10, kExponent) * x);
}

Var normalized(const Var& x) { return layer_norm(x, ones({4}, DType::f64), zeros({4}, DType::f64), 0); }
Var pole(const Var& x) { return 1 / (x - 1); }
Var log_of(const Var& x) { return log(x); }
Var norm_of(const Var& x) { return norm(x); }

const std::vector<HardPoint> kPoints{
    {"log_of_1e_minus_300", log_of, {1e-300}},
    {"log_of_1e_minus_14", log_of, {1e-14}},
    {"log_of_small_and_large_values", log_of, {1e-30, 1, 2}},
    {"log_near_its_end", [](const Var& x) { return log(x - 1); }, {1 + 1e-9}},
    {"norm_of_1e_minus_160", norm_of, {1e-160, -2e-160, 3e-161, 5e-160}},
    {"norm_of_one_value", norm_of, {1e-160}},
    {"square_root_near_its_end", [](const Var& x) { return sqrt(x); }, {1e-20}},
    {"pole_at_1e_minus_6", pole, {1 + 1e-6}},
    {"pole_at_1e_minus_9", pole, {1 + 1e-9}},
    {"pole_at_1e_minus_100", [](const Var& x) { return 1 / x; }, {1e-100}},
    {"layer_norm_of_variance_1e_minus_14", normalized, {1 + 1e-7, 1 - 2e-7, 1 + 3e-8, 1 - 5e-8}},
    {"layer_norm_of_small_values", normalized, {1e-14, -2e-14, 3e-15, 5e-14}},
    {"steep_tanh", shifted_tanh<6>, {1 + 1e-7}},
    {"very_steep_tanh", shifted_tanh<9>, {1 + 1e-10}},
    {"sine_of_1e4_x", oscillation<4>, {0.7, -1.2, 2.3}},
    {"sine_of_1e5_x", oscillation<5>, {0.7, -1.2, 2.3}},
    {"sine_of_1e6_x", oscillation<6>, {0.7, -1.2, 2.3}},
    {"sine_of_1_over_x", [](const Var& x) { return x * sin(1 / x); }, {1e-5}},
    {"rounding_beside_a_kink", [](const Var& x) { return relu(x); }, {1e-13}},
    {"kink", [](const Var& x) { return relu(x) + 0.25 * x; }, {0}},
    {"tie", [](const Var& x) { return max(x); }, {1, 1, 1}},
    {"jump", [](const Var& x) { return sigmoid(1e300 * x); }, {0}, false},
};

class AtHardPoints : public testing::TestWithParam<HardPoint> {
 protected:
  static GradcheckResult check(double factor) {
    const auto planted = [factor](const Var& x) {
      return record("planted", x.value().clone(), {x}, [factor](const Tensor& dy) { return factor * dy; });
    };
    const std::vector<double>& x = GetParam().x;
    return gradcheck([&](auto x) { return GetParam().f(planted(x[0])); },
                     {Tensor::of<double>({static_cast<std::int64_t>(x.size())}, x)}, {.blame = false});
  }
};

TEST_P(AtHardPoints, TheRightGradientIsNeverWrong) {
  const GradcheckResult result = check(1);
  EXPECT_EQ(result.wrong, 0) << result.message;
  EXPECT_EQ(result.ok, GetParam().checked) << result.message;
  EXPECT_EQ(result.unchecked > 0, !GetParam().checked) << result.message;
}

TEST_P(AtHardPoints, NoWrongFactorPasses) {
  for (const double factor : {1.01, 0.5, 2.0, -1.0, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
    const GradcheckResult result = check(factor);
    EXPECT_FALSE(result) << factor << ": " << result.message;
    EXPECT_GT(result.wrong + result.unchecked, 0) << factor << ": " << result.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Known, AtHardPoints, testing::ValuesIn(kPoints),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Gradcheck, SaysWhatIsUnchecked) {
  const GradcheckResult result =
      gradcheck([](auto x) { return sigmoid(1e300 * x[0]) + x[1]; }, {zeros({1}, DType::f64), ones({1}, DType::f64)});
  EXPECT_FALSE(result);
  EXPECT_TRUE(result.message.ends_with("\n3 derivatives: 0 wrong, 0 undecidable, 0 at kinks, 2 unchecked"))
      << result.message;
}

}  // namespace
}  // namespace braid::wrong_factors_test

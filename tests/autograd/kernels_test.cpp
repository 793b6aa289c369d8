#include <braid/autograd/ops.h>
#include <tests/autograd/ops/support.h>
#include <tests/target_guard.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

namespace braid::kernels_test {
namespace {

using op_tests::expect_close;
using op_tests::gradients;
using op_tests::normal;

struct VectorOp {
  const char* name;
  std::vector<Shape> shapes;
  GradcheckFunction f;
};

const Tensor kTargets = [] {
  Rng rng(5);
  return randint(0, 67, {40}, rng);
}();

const std::vector<VectorOp> kOps{
    {"exp", {{3, 67}}, [](auto x) { return exp(x[0]); }},
    {"log", {{3, 67}}, [](auto x) { return log(x[0] * x[0]); }},
    {"log1p", {{3, 67}}, [](auto x) { return log1p(x[0] * x[0]); }},
    {"expm1", {{3, 67}}, [](auto x) { return expm1(x[0]); }},
    {"softplus", {{3, 67}}, [](auto x) { return softplus(x[0]); }},
    {"tanh", {{3, 67}}, [](auto x) { return tanh(x[0]); }},
    {"sigmoid", {{3, 67}}, [](auto x) { return sigmoid(x[0]); }},
    {"silu", {{3, 67}}, [](auto x) { return silu(x[0]); }},
    {"gelu", {{3, 67}}, [](auto x) { return gelu(x[0]); }},
    {"gelu_erf", {{3, 67}}, [](auto x) { return gelu_erf(x[0]); }},
    {"softmax", {{3, 67}}, [](auto x) { return softmax(x[0]); }},
    {"log_softmax", {{3, 67}}, [](auto x) { return log_softmax(x[0]); }},
    {"logsumexp", {{3, 67}}, [](auto x) { return logsumexp(x[0], {1}); }},
    {"rms_norm", {{40, 67}, {67}}, [](auto x) { return rms_norm(x[0], x[1]); }},
    {"layer_norm", {{40, 67}, {67}, {67}}, [](auto x) { return layer_norm(x[0], x[1], x[2]); }},
    {"cross_entropy", {{40, 67}}, [](auto x) { return cross_entropy(x[0], kTargets); }},
    {"rotary_embedding", {{2, 9, 3, 38}}, [](auto x) { return rotary_embedding(x[0]); }},
    {"rotary_embedding_halves",
     {{2, 9, 3, 38}},
     [](auto x) { return rotary_embedding(x[0], 10000, 0, RotaryLayout::halves); }},
    {"attention", {{1, 90, 2, 21}, {1, 90, 2, 21}, {1, 90, 2, 21}}, [](auto x) { return attention(x[0], x[1], x[2]); }},
};

/// The value of the op, then its gradients.
std::vector<Tensor> results(const VectorOp& op, DType dtype) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < op.shapes.size(); ++i) inputs.push_back(normal(op.shapes[i], i, dtype));
  std::vector<Tensor> all{op.f(std::vector<Var>(inputs.begin(), inputs.end())).value()};
  const Tensor dy = normal(all.front().shape(), 9, dtype);
  for (const Tensor& grad : gradients(op.f, inputs, dy)) all.push_back(grad);
  return all;
}

/// Expects `expected` of the target in use.
void expect_results(const VectorOp& op, DType dtype, const std::vector<Tensor>& expected) {
  const std::vector<Tensor> actual = results(op, dtype);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expect_close(actual[i], expected[i], dtype == DType::f32 ? 1e-5 : 1e-13);
}

class Kernels : public ::testing::TestWithParam<VectorOp> {};

// One program serves every x86-64 machine: all targets that it was built for and that run here agree.
TEST_P(Kernels, AgreeOnEverySimdTarget) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<Tensor> expected = results(GetParam(), dtype);
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const TargetGuard guard(target);
      expect_results(GetParam(), dtype, expected);
    }
  }
}

TEST_P(Kernels, AgreeUnderEveryInstructionSet) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<Tensor> expected = results(GetParam(), dtype);
    for (const InstructionSet set : instruction_sets()) {
      SCOPED_TRACE(name(set));
      const WithInstructionSet guard(set);
      expect_results(GetParam(), dtype, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Kernels, ::testing::ValuesIn(kOps),
                         [](const auto& tested) { return std::string(tested.param.name); });

struct Elementary {
  const char* name;
  Var (*op)(const Var&);
  double (*reference)(double);
};

double sigmoid_reference(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

const Elementary kElementary[] = {
    {"exp", exp, std::exp},
    {"expm1", expm1, std::expm1},
    {"log", log, std::log},
    {"log1p", log1p, std::log1p},
    {"sin", sin, std::sin},
    {"cos", cos, std::cos},
    {"tanh", tanh, std::tanh},
    {"sigmoid", sigmoid, sigmoid_reference},
    {"softplus", softplus, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
    {"silu", silu, [](double x) { return x * sigmoid_reference(x); }},
    {"gelu", gelu,
     [](double x) { return x * sigmoid_reference(std::sqrt(8 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }},
    {"gelu_erf", gelu_erf, [](double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; }},
};

/// Numbers of all sizes and both signs; no NaN, whose sign the compiler may choose.
Tensor all_sorts_of_floats() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 40009)
    if (const auto v = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); !std::isnan(v)) x.push_back(v);
  return Tensor::of<float>({static_cast<std::int64_t>(x.size())}, std::span(x));
}

/// The sets whose multiply-adds round once.
std::vector<InstructionSet> fused_sets() {
  std::vector<InstructionSet> sets = instruction_sets();
  std::erase(sets, InstructionSet::baseline);
  return sets;
}

TEST(ElementaryFunctions, AreWithinAnUlpInF32) {
  const Tensor x = all_sorts_of_floats();
  const float* at = x.data<float>();
  using Limits = std::numeric_limits<float>;
  for (const InstructionSet set : fused_sets())
    for (const auto& [name, op, reference] : kElementary) {
      const WithInstructionSet guard(set);
      const Tensor y = op(x).value();
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        const double exact = reference(static_cast<double>(at[i])), actual = y.data<float>()[i];
        if (!(std::abs(exact) >= Limits::min() && std::abs(exact) <= Limits::max())) continue;
        const double ulp = std::ldexp(1, std::ilogb(exact) - 23);
        ASSERT_LE(std::abs(actual - exact), 1.1 * ulp) << name << " of " << at[i];
      }
    }
}

TEST(ElementaryFunctions, HaveTheSameBitsOnAllSetsThatFuse) {
  const Tensor single = all_sorts_of_floats(), twice = (Var(single.to(DType::f64)) * (1 + 1e-12)).value();
  for (const auto& [name, op, reference] : kElementary)
    for (const Tensor& x : {single, twice}) {
      Tensor expected;
      for (const InstructionSet set : fused_sets()) {
        const WithInstructionSet guard(set);
        const Tensor y = op(x).value();
        if (!expected.defined()) expected = y;
        EXPECT_TRUE(identical(y, expected)) << name << " on " << braid::name(set);
      }
    }
}

}  // namespace
}  // namespace braid::kernels_test

#include <braid/autograd/ops.h>
#include <tests/autograd/ops/support.h>
#include <tests/target_guard.h>

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

}  // namespace
}  // namespace braid::kernels_test

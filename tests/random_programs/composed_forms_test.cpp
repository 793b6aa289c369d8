// Random programs with every fused op in its composed form: the values and gradients of the fused form, made of
// primitives alone.
#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/composed.h>
#include <tests/random_programs/check.h>
#include <tests/random_programs/print.h>
#include <tests/random_programs/table.h>

namespace braid::programs::composed_forms_test {
namespace {

/// The ops that composed forms are made of. What is not here is fused, and has a composed form.
const std::set<std::string> kPrimitives = {"abs",
                                           "add",
                                           "broadcast_to",
                                           "cast",
                                           "chunk",
                                           "clamp",
                                           "concat",
                                           "cos",
                                           "cumsum",
                                           "div",
                                           "dropout",
                                           "embedding",
                                           "entropic_projection",
                                           "exp",
                                           "expand_dims",
                                           "expm1",
                                           "flip",
                                           "gather",
                                           "gelu_erf",
                                           "index_select",
                                           "linear_scan",
                                           "log",
                                           "log1p",
                                           "masked_fill",
                                           "matmul",
                                           "max",
                                           "maximum",
                                           "mean",
                                           "min",
                                           "minimum",
                                           "mul",
                                           "neg",
                                           "network",
                                           "pad",
                                           "permute",
                                           "pow",
                                           "relu",
                                           "repeat",
                                           "reshape",
                                           "roll",
                                           "rsqrt",
                                           "scatter_add",
                                           "select",
                                           "sigmoid",
                                           "sin",
                                           "slice",
                                           "sort",
                                           "split",
                                           "sqrt",
                                           "squeeze",
                                           "stack",
                                           "sub",
                                           "sum",
                                           "tanh",
                                           "topk",
                                           "transpose",
                                           "unfold",
                                           "where"};

class Names : public Probe {
 public:
  void recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>&) override {
    if (!op.inputs.empty()) names.insert(op.name);  // else it is a variable
  }
  bool opens_checkpoints() const override { return true; }

  std::set<std::string> names;
};

GradcheckFunction function_of(const Program& program) {
  return [&program](std::span<const Var> inputs) { return result_of(program, inputs); };
}

/// The largest difference of value and gradients, each relative to its largest number or 1.
double difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double scale = 1;
    for (const double v : b[i].to_vector<double>()) scale = std::max(scale, std::abs(v));
    worst = std::max(worst, largest_difference(a[i], b[i]) / scale);
  }
  return worst;
}

TEST(ComposedForms, AgreeWithFusedOnesAndAreMadeOfPrimitives) {
  std::set<std::string> fused_ops;
  for (std::uint64_t index = 0; index < 10000; ++index) {
    const Program program = random_program(all_ops(), 3, index);
    const std::vector<Tensor> inputs = inputs_of(program);
    Names fused_names, names;
    const auto fused = value_and_gradients(function_of(program), inputs, &fused_names);
    const Composed scope;
    const auto composed = value_and_gradients(function_of(program), inputs, &names);
    for (const std::string& name : names.names)
      EXPECT_TRUE(kPrimitives.contains(name)) << name << " was recorded while composed forms ran";
    EXPECT_LE(difference(composed, fused), 1e-9) << test_text(program, {}, "Composed");
    std::ranges::set_difference(fused_names.names, kPrimitives, std::inserter(fused_ops, fused_ops.end()));
  }
  for (const char* name : {"attention", "conv1d", "cross_entropy", "einsum", "gelu", "layer_norm", "linear",
                           "read_streams", "softmax", "sinkhorn"})
    EXPECT_THAT(fused_ops, testing::Contains(name));
}

TEST(ComposedForms, PassTheChecksOfRandomPrograms) {
  for (std::uint64_t index = 0; index < 300; ++index) {
    const Program program = random_program(all_ops(), 4, index);
    const Composed scope;
    const auto failure = check_program(program);
    EXPECT_FALSE(failure) << test_text(program, *failure, "Composed");
  }
}

}  // namespace
}  // namespace braid::programs::composed_forms_test

#include <tests/autograd/op_registry.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/composed.h>
#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/verify/detail/comparison.h>
#include <braid/core/random.h>
#include <tests/derivative_patterns.h>

namespace braid {
static void PrintTo(const OpCase& op_case, std::ostream* out) { *out << op_case.op; }
}  // namespace braid

namespace braid::op_registry_test {
namespace {

/// What a regular expression's first group matches in the files of autograd/ops that end in `extension`.
std::set<std::string> names_in_sources(const char* extension, const std::regex& pattern) {
  static const std::regex internal(R"(namespace detail \{[^]*?\}  // namespace detail)");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(BRAID_OPS_DIR)) {
    if (entry.path().extension() != extension) continue;
    std::ifstream file(entry.path());
    const std::string text = std::regex_replace(std::string(std::istreambuf_iterator<char>(file), {}), internal, "");
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
      names.insert((*match)[1]);
  }
  return names;
}

TEST(OpRegistry, HoldsEveryOpThatTheHeadersDeclare) {
  const std::regex declared(R"(\n(?:inline )?(?:Var|Sorted|std::vector<Var>) (?!operator)(\w+)\()");
  std::set<std::string> registered;
  for (const OpCase& op_case : op_registry()) registered.insert(op_case.op);
  EXPECT_EQ(registered, names_in_sources(".h", declared));
}

TEST(OpRegistry, HoldsEveryNameThatTheSourcesRecord) {
  const std::regex recorded(R"re(record\(\s*"(\w+)")re");  // vjps that are ops are checked with theirs
  std::set<std::string> registered;
  for (const OpCase& op_case : op_registry()) registered.insert(op_case.op);
  for (const std::string& op : names_in_sources(".cpp", recorded))
    EXPECT_TRUE(registered.contains(op) || op.ends_with("_vjp")) << op;
}

class EveryOp : public testing::TestWithParam<OpCase> {};

TEST_P(EveryOp, PassesGradcheckInEveryLayout) {
  for (const Layout layout : kLayouts) {
    const GradcheckResult result = gradcheck(GetParam().f, make_inputs(GetParam(), layout));
    EXPECT_TRUE(result) << name(layout) << ": " << result.message;
    EXPECT_TRUE(layout == Layout::zero_size || result.derivatives > 0);
  }
}

TEST_P(EveryOp, PassesGradcheckOfSecondOrderInEveryLayout) {
  for (const Layout layout : kLayouts) {
    const GradcheckResult result =
        gradcheck(GetParam().f, make_inputs(GetParam(), layout), {.order = 2, .by = GradcheckOptions::By::rules});
    EXPECT_TRUE(result) << name(layout) << ": " << result.message;
  }
}

TEST_P(EveryOp, HasTheSameGradientsByRulesAnywhere) {
  for (std::uint64_t point = 0; point < 32; ++point) {
    const GradcheckResult result =
        gradcheck(GetParam().f, make_random_inputs(GetParam(), point), {.by = GradcheckOptions::By::rules});
    EXPECT_TRUE(result) << point << ": " << result.message;
  }
}

// The vjps of what rules record, and the rules of that.
TEST_P(EveryOp, HasTheSameSecondDerivativesByRules) {
  const HigherOrder scope;
  const std::vector<Tensor> inputs = make_inputs(GetParam(), Layout::contiguous);
  Rng rng(9);
  const Tensor dy = randn(GetParam().f(std::vector<Var>(inputs.begin(), inputs.end())).shape(), rng, DType::f64);
  const GradcheckFunction gradient = detail::gradient_function(GetParam().f, dy);
  const GradcheckResult result = gradcheck(gradient, inputs, {.blame = false, .by = GradcheckOptions::By::rules});
  EXPECT_TRUE(result) << result.message;
}

TEST_P(EveryOp, HasTheSameGradientsWhicheverInputsAreConstants) {
  for (const Layout layout : {Layout::contiguous, Layout::sliced, Layout::zero_size})
    patterns::expect_gradients_of_every_subset(GetParam().f, make_inputs(GetParam(), layout));
}

TEST_P(EveryOp, HasOneJacobian) {
  for (const Layout layout : {Layout::contiguous, Layout::transposed})
    patterns::expect_one_jacobian(GetParam().f, make_inputs(GetParam(), layout));
}

TEST_P(EveryOp, TakesUndefinedCotangentsForZeros) {
  const std::vector<Tensor> inputs = make_inputs(GetParam(), Layout::contiguous);
  patterns::expect_undefined_cotangents_to_be_zeros(GetParam().f, inputs);
  const HigherOrder scope;
  patterns::expect_undefined_cotangents_to_be_zeros(GetParam().f, inputs);
}

TEST_P(EveryOp, GivesTheValuesOfContiguousInputsInEveryLayout) {
  for (const Layout layout : kLayouts) {
    std::vector<Var> views, copies;
    for (const Tensor& input : make_inputs(GetParam(), layout)) {
      views.emplace_back(input);
      copies.emplace_back(input.clone());
    }
    const Tensor y = GetParam().f(views).value(), expected = GetParam().f(copies).value();
    EXPECT_EQ(y.shape(), expected.shape());
    EXPECT_THAT(y.to_vector<double>(), testing::Pointwise(testing::DoubleNear(1e-13), expected.to_vector<double>()))
        << name(layout);
  }
}

TEST_P(EveryOp, GivesF32ForF32) {
  std::vector<Var> inputs;
  for (const Tensor& input : make_inputs(GetParam(), Layout::contiguous)) inputs.emplace_back(input);
  const std::vector<double> expected = GetParam().f(inputs).value().to_vector<double>();
  for (Var& input : inputs) input = input.value().to(DType::f32);
  const Var y = GetParam().f(inputs);
  EXPECT_EQ(y.dtype(), DType::f32);
  EXPECT_THAT(y.value().to_vector<double>(), testing::Pointwise(testing::DoubleNear(2e-5), expected));
}

/// The result of a case and the gradients of its inputs, for a cotangent that bf16 has.
struct Evaluated {
  std::vector<Tensor> results;
  std::size_t ops;
};

Evaluated evaluate(const OpCase& op_case, const std::vector<Tensor>& inputs) {
  Tape tape;
  std::vector<Var> watched;
  for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
  const Var y = op_case.f(watched);
  Rng rng(1);
  const Tensor dy = rand(y.shape(), rng).to(DType::bf16).to(y.dtype());
  const std::size_t ops = tape.size() - inputs.size();
  if (y.requires_grad()) tape.backward(y, dy);
  Evaluated all{{y.value()}, ops};
  for (const Var& x : watched) all.results.push_back(tape.gradient(x));
  return all;
}

/// Relative to the largest element.
double worst_error(const Tensor& got, const Tensor& expected) {
  const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  double worst = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return size == 0 ? worst : worst / size;
}

// What an op makes of bf16 is what it makes of the same numbers in f32, rounded once. A vjp rounds its results, where
// an input was broadcast also the terms of their sums, and may start from a rounded result. Where a case calls several
// ops, each of them rounds.
TEST_P(EveryOp, RoundsOnceInBF16) {
  for (const Layout layout : kLayouts) {
    std::vector<Tensor> narrow, wide;
    for (const Tensor& input : make_inputs(GetParam(), layout)) {
      narrow.push_back(input.to(DType::bf16));
      wide.push_back(narrow.back().to(DType::f32));
    }
    const Evaluated got = evaluate(GetParam(), narrow), expected = evaluate(GetParam(), wide);
    EXPECT_TRUE(got.results[0].dtype() == DType::bf16 || GetParam().op.ends_with("loss") ||
                GetParam().op.find("entropy") != std::string::npos || GetParam().op == "kl_divergence");
    for (std::size_t i = 0; i < got.results.size(); ++i) {
      const double roundings = static_cast<double>(expected.ops) * (i == 0 ? 1 : 3);
      EXPECT_LE(worst_error(got.results[i], expected.results[i]), roundings * 0x1p-8) << name(layout) << ", " << i;
    }
  }
}

std::vector<Tensor> converted(std::vector<Tensor> inputs, DType dtype) {
  for (Tensor& input : inputs) input = input.to(dtype);
  return inputs;
}

/// The op's value and gradients and those of its composed form are equal to `tolerance`.
void expect_composed_form(const OpCase& op_case, const std::vector<Tensor>& inputs, double tolerance) {
  const Evaluated got = evaluate(op_case, inputs);
  const Composed composed;
  const Evaluated expected = evaluate(op_case, inputs);
  EXPECT_TRUE(!op_case.op.ends_with("softmax") || expected.ops > got.ops) << "the same op";
  for (std::size_t i = 0; i < got.results.size(); ++i) {
    ASSERT_EQ(got.results[i].shape(), expected.results[i].shape());
    ASSERT_EQ(got.results[i].dtype(), expected.results[i].dtype());
    EXPECT_LE(worst_error(got.results[i], expected.results[i]), tolerance) << name(inputs[0].dtype()) << ", " << i;
  }
}

TEST_P(EveryOp, AgreesWithItsComposedForm) {
  for (const Layout layout : kLayouts) {
    SCOPED_TRACE(name(layout));
    const std::vector<Tensor> inputs = make_inputs(GetParam(), layout);
    expect_composed_form(GetParam(), inputs, 1e-13);
    expect_composed_form(GetParam(), converted(inputs, DType::f32), 1e-5);
    expect_composed_form(GetParam(), converted(inputs, DType::bf16), 0x1p-6);
  }
}

TEST_P(EveryOp, AgreesWithItsComposedFormAnywhere) {
  for (std::uint64_t point = 0; point < 32; ++point) {
    SCOPED_TRACE(point);
    expect_composed_form(GetParam(), make_random_inputs(GetParam(), point), 1e-12);
  }
}

TEST(OpsOfBF16, RefuseOtherTypesBesideIt) {
  const Var x = ones({2, 3}, DType::bf16), wide = ones({2, 3}, DType::f64), ids = ones({2, 3}, DType::i32);
  for (const Var& other : {wide, ids}) {
    EXPECT_THROW(mse_loss(x, other), DTypeError);
    EXPECT_THROW(kl_divergence(x, other), DTypeError);
    EXPECT_THROW(binary_cross_entropy_with_logits(x, other), DTypeError);
    EXPECT_THROW(einsum("ij,ij->i", {x, other}), DTypeError);
    EXPECT_THROW(linear(x, other), DTypeError);
  }
  EXPECT_THROW(cross_entropy(x, wide), DTypeError);
  EXPECT_THROW(conv1d(ones({1, 4, 2}, DType::bf16), ones({3, 2, 2}, DType::f64)), DTypeError);
  EXPECT_EQ(binary_cross_entropy_with_logits(x, x, Reduction::mean, ones({3}, DType::bf16)).dtype(), DType::f32);
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryOp, testing::ValuesIn(op_registry()),
                         [](const auto& tested) { return tested.param.op + "_" + std::to_string(tested.index); });

}  // namespace
}  // namespace braid::op_registry_test

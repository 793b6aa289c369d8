// Vjps that are ops with kernels and vjps of their own: products with the Hessian beside those of the composed forms,
// at sizes that are odd, of one element, and larger than a block.
#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops.h>
#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::second_vjps_test {
namespace {

using Function = std::function<Var(const std::vector<Var>&)>;

/// hvp of the sum of y^3, so that cotangents are not constant, by kernels and by composed forms.
void expect_the_product_of_composed_forms(const Function& f, const std::vector<Shape>& shapes) {
  Rng rng(1);
  std::vector<Var> x, v;
  for (const Shape& shape : shapes) {
    x.push_back(randn(shape, rng, DType::f64));
    v.push_back(randn(shape, rng, DType::f64));
  }
  const auto loss = [&](const std::vector<Var>& x) {
    const Var y = f(x);
    return sum(y * y * y);
  };
  const std::vector<Var> fused = hvp(loss, x, v);
  const Composed scope;
  const std::vector<Var> composed = hvp(loss, x, v);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = x[i].value().numel() == 0 ? 0 : max(abs(composed[i])).item();
    const double error = x[i].value().numel() == 0 ? 0 : max(abs(fused[i] - composed[i])).item();
    EXPECT_LE(error, 1e-12 * std::max(1.0, size)) << fmt::format("input {} {}", i, shapes[i]);
  }
}

TEST(SecondVjps, OfAttentionAgreeForAllOptions) {
  for (const auto& [queries, keys] : {std::pair(1, 1), std::pair(3, 7), std::pair(7, 3), std::pair(200, 231)})
    for (const std::int64_t key_heads : {1, 2})
      for (const AttentionOptions& options :
           {AttentionOptions{}, AttentionOptions{.causal = true}, AttentionOptions{.causal = true, .window = 5},
            AttentionOptions{.scale = 0.3}}) {
        const auto f = [&](const std::vector<Var>& x) { return attention(x[0], x[1], x[2], options); };
        expect_the_product_of_composed_forms(f, {{2, queries, 2, 5}, {2, keys, key_heads, 5}, {2, keys, key_heads, 5}});
      }
}

TEST(SecondVjps, OfAttentionAgreeWithMasks) {
  Rng rng(2);
  Tensor mask = randn({2, 1, 9, 1}, rng, DType::f64);
  Tensor shown = rand({9, 11}, rng, DType::f64);
  double* sees = shown.mutable_data<double>();
  for (std::int64_t i = 0; i < 9 * 11; ++i) sees[i] = i / 11 == 4 || sees[i] < 0.5 ? 0 : 1;  // query 4 sees no key
  for (const Tensor& m : {mask, shown.to(DType::i32)}) {
    const auto f = [&](const std::vector<Var>& x) { return attention(x[0], x[1], x[2], {.mask = m}); };
    expect_the_product_of_composed_forms(f, {{2, 9, 2, 3}, {2, 11, 1, 3}, {2, 11, 1, 3}});
  }
}

TEST(SecondVjps, OfRmsNormAgree) {
  for (const auto& [rows, width] : {std::pair(0, 3), std::pair(1, 1), std::pair(5, 17), std::pair(700, 67)})
    expect_the_product_of_composed_forms([](const std::vector<Var>& x) { return rms_norm(x[0], x[1]); },
                                         {{rows, width}, {width}});
}

TEST(SecondVjps, OfGeluSoftmaxAndLinearAgree) {
  for (const Shape& shape : {Shape{0, 3}, Shape{1, 1}, Shape{5, 17}, Shape{70, 33}}) {
    const std::int64_t width = shape[1];
    expect_the_product_of_composed_forms([](const std::vector<Var>& x) { return gelu(8.0 * x[0]); }, {shape});
    expect_the_product_of_composed_forms([](const std::vector<Var>& x) { return softmax(x[0]); }, {shape});
    expect_the_product_of_composed_forms([](const std::vector<Var>& x) { return log_softmax(x[0], 1); }, {shape});
    expect_the_product_of_composed_forms([](const std::vector<Var>& x) { return logsumexp(x[0], {1}); }, {shape});
    expect_the_product_of_composed_forms([](const std::vector<Var>& x) { return linear(x[0], x[1], x[2]); },
                                         {shape, {4, width}, {4}});
  }
}

}  // namespace
}  // namespace braid::second_vjps_test

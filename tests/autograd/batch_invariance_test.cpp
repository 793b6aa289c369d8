#include <braid/autograd/ops.h>
#include <braid/core/batch_invariant.h>
#include <tests/autograd/ops/support.h>
#include <tests/target_guard.h>

namespace braid::batch_invariance_test {
namespace {

using op_tests::normal;

constexpr std::int64_t kWidth = 37, kHidden = 50;

struct RowOp {
  const char* name;
  std::function<Var(const Var& x)> f;  // [1, T, kWidth] -> [1, T, ..]
};

/// What a block of a transformer does to each position alone.
std::vector<RowOp> row_ops(DType dtype) {
  const Var weight = normal({kHidden, kWidth}, 1, dtype), back = normal({kWidth, kHidden}, 2, dtype);
  const Var bias = normal({kHidden}, 3, dtype), gain = normal({kWidth}, 4, dtype), shift = normal({kWidth}, 5, dtype);
  return {
      {"linear", [=](const Var& x) { return linear(x, weight); }},
      {"linear with bias", [=](const Var& x) { return linear(x, weight, bias); }},
      {"matmul", [=](const Var& x) { return matmul(x, transpose(weight)); }},
      {"einsum",
       [=](const Var& x) {
         return einsum("btc,hc->bth", {x, weight});
       }},
      {"rms_norm", [=](const Var& x) { return rms_norm(x, gain); }},
      {"rms_norm of heads",
       [](const Var& x) {
         return rms_norm(reshape(x, {1, x.size(1), kWidth, 1}));
       }},
      {"layer_norm", [=](const Var& x) { return layer_norm(x, gain, shift); }},
      {"softmax", [](const Var& x) { return softmax(x); }},
      {"log_softmax", [](const Var& x) { return log_softmax(x); }},
      {"logsumexp", [](const Var& x) { return logsumexp(x, {-1}); }},
      {"mean", [](const Var& x) { return mean(x * x, {-1}, true); }},
      {"gelu", [](const Var& x) { return gelu(x); }},
      {"gelu_erf", [](const Var& x) { return gelu_erf(x); }},
      {"silu", [](const Var& x) { return silu(x); }},
      {"tanh", [](const Var& x) { return tanh(x); }},
      {"sigmoid", [](const Var& x) { return sigmoid(x); }},
      {"exp", [](const Var& x) { return exp(x); }},
      {"residual", [=](const Var& x) { return x + 0.3 * x * gain - shift / gain; }},
      {"SwiGLU", [=](const Var& x) { return linear(silu(linear(x, weight)) * linear(x, weight, bias), back); }},
  };
}

/// One position alone and all together give the same bits, on every SIMD target.
TEST(BatchInvariance, HoldsForWhatABlockDoesToEachPosition) {
  const BatchInvariant scope;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    for (const DType dtype : {DType::f32, DType::f64})
      for (const RowOp& op : row_ops(dtype)) {
        const Tensor x = normal({1, 133, kWidth}, 6, dtype);
        const Tensor together = op.f(x);
        for (const std::int64_t t : {0, 1, 17, 64, 132})
          ASSERT_TRUE(identical(op.f(x.slice(1, t, t + 1)), together.slice(1, t, t + 1)))
              << op.name << " at " << t << ", " << hwy::TargetName(target);
      }
  }
}

}  // namespace
}  // namespace braid::batch_invariance_test

#include <cmath>
#include <limits>

#include <braid/autograd/ops.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// All of k and v up to each position. q, k, v [B, T, H, D].
Var composed_attention(const Var& q, const Var& k, const Var& v) {
  const std::int64_t t = q.size(1);
  std::vector<std::int32_t> past;
  for (std::int64_t i = 0; i < t * t; ++i) past.push_back(i % t <= i / t);
  const Tensor mask = Tensor::of<std::int32_t>({t, t}, past);
  const Var scores = matmul(permute(q, {0, 2, 1, 3}), permute(k, {0, 2, 3, 1})) / std::sqrt(double(q.size(3)));
  const Var nothing = scalar(-std::numeric_limits<double>::infinity(), q.dtype());
  return permute(matmul(softmax(where(mask, scores, nothing)), permute(v, {0, 2, 1, 3})), {0, 2, 1, 3});
}

/// The whole sublayer without biases; `attend(q, k, v)` on [B, T, H, D].
Path attention_with(const char* name, Var (*attend)(const Var&, const Var&, const Var&)) {
  return path(name, [attend](const CaseInputs& a) {
    const Var& x = a["x"];
    const std::int64_t heads = size(a.settings, "heads");
    const auto head = [&](const char* weight) {
      return reshape(linear(x, a[weight]), {x.size(0), x.size(1), heads, x.size(2) / heads});
    };
    return linear(reshape(attend(head("a.wq"), head("a.wk"), head("a.wv")), x.shape()), a["a.wo"]);
  });
}

}  // namespace

std::vector<Module> attention_modules() {
  const auto fused = [](const Var& q, const Var& k, const Var& v) { return attention(q, k, v); };
  return {{"causal_attention", {attention_with("fused", fused), attention_with("composed", composed_attention)}}};
}

}  // namespace braid::golden

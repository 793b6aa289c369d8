#include <braid/autograd/ops.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

/// The whole sublayer without biases; `attend(q, k, v)` on [B, T, H, D].
Path attention_with(const char* name, Var (*attend)(const Var&, const Var&, const Var&)) {
  return path(name, [attend](const Arguments& a) {
    const Var& x = a["x"];
    const std::int64_t heads = a.config.integer("heads");
    const auto head = [&](const char* weight) {
      return reshape(linear(x, a[weight]), {x.size(0), x.size(1), heads, x.size(2) / heads});
    };
    return linear(reshape(attend(head("a.wq"), head("a.wk"), head("a.wv")), x.shape()), a["a.wo"]);
  });
}

}  // namespace

std::vector<Module> attention_modules() { return {{"causal_attention", {attention_with("fused", causal_attention)}}}; }

}  // namespace braid::golden

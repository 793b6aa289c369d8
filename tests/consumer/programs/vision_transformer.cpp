// A vision transformer: patches, a class token and attention in both directions tell four shapes apart.
#include <fmt/format.h>

#include <braid/braid.h>

using namespace braid;

struct SelfAttention {
  nn::Linear qkv, out;

  Var operator()(const Var& x) const {
    const auto heads = chunk(qkv(x).reshape({x.size(0), x.size(1), 12, -1}), 2, 3);  // q, k, v [B, T, 4, D]
    return out(attention(heads[0], heads[1], heads[2], {.causal = false}).reshape(x.shape()));
  }
  void params(auto&& visit) { visit("qkv", qkv), visit("out", out); }
};

struct ViT {
  nn::Linear patch;
  Var positions;  // [17, 32], the first is the class token
  nn::Sublayer<SelfAttention, nn::Residual> mix;
  nn::Sublayer<nn::MLP, nn::Residual> mlp;
  nn::Linear head;

  Var operator()(const Tensor& images) const {  // [B, 16, 16] -> logits [B, 4]
    const Tensor tiles = images.reshape({-1, 4, 4, 4, 4}).permute({0, 1, 3, 2, 4}).reshape({-1, 16, 16});
    return head(mlp(mix(pad(patch(tiles), 1, 1, 0) + positions)).select(1, 0));
  }
  void params(auto&& visit) {
    visit("patch", patch), visit("positions", positions), visit("mix", mix), visit("mlp", mlp), visit("head", head);
  }
};

/// Noisy images [n, 16, 16], each with a plus, a cross, a square or a diamond somewhere, and which it is.
std::pair<Tensor, Tensor> draw(std::int64_t n, Rng& rng) {
  const auto middle = [&] { return randint(3, 13, {n, 1, 1}, rng).to(DType::f32); };
  const Var dx = abs(arange(16) - middle()), dy = abs(arange(16).expand_dims(1) - middle()), far = maximum(dx, dy);
  const Var shapes = stack({dx * dy == 0, dx == dy, far == 3, dx + dy == 3}, 0) * (far <= 3);
  const Tensor which = randint(0, 4, {n}, rng), noise = randn({n, 16, 16}, rng) * 0.1;
  return {einsum("bk,kbij->bij", one_hot(which, 4), shapes.to(DType::f32)) + noise, which};
}

int main() {
  Rng rng(1);
  nn::Sublayer<SelfAttention, nn::Residual> mix{nn::LayerNorm(32), {{32, 96, rng}, {32, 32, rng}}, {}};
  nn::Sublayer<nn::MLP, nn::Residual> mlp{nn::LayerNorm(32), nn::MLP(32, 64, rng), {}};
  ViT model{{16, 32, rng}, randn({17, 32}, rng) * 0.02, mix, mlp, {32, 4, rng}};
  nn::AdamW optimizer({.lr = 0.003});
  const auto step = value_and_grad([](const ViT& m, auto& x, auto& which) { return cross_entropy(m(x), which); });
  for (int i = 0; i <= 600; ++i) {
    const auto [images, which] = draw(64, rng);
    const auto [loss, grads] = step(model, images, which);
    optimizer.step(model, grads);
    if (i % 100 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, loss);
  }
  const auto [images, which] = draw(500, rng);
  const double right = mean((argmax(model(images), -1) == which).to(DType::f32)).item();
  fmt::print("right: {:.1f} %\n", 100 * right);
  return right > 0.9 ? 0 : 1;
}

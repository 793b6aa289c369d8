// Mixture of experts inside manifold-constrained hyper-connections: each token goes to two of four MLPs.
#include <fmt/format.h>

#include <braid/braid.h>

using namespace braid;
constexpr std::int64_t C = 32;

struct Experts {
  nn::Linear router;  // [4, C]
  std::vector<nn::MLP> experts;

  explicit Experts(Rng& rng) : router(C, 4, rng, {.bias = false}) {
    for (int e = 0; e < 4; ++e) experts.emplace_back(C, 2 * C, rng);
  }
  Var operator()(const Var& x) const {                 // [N, C]
    const auto [scores, chosen] = topk(router(x), 2);  // [N, 2]
    const Var weights = softmax(scores);
    Var y = zeros(x.shape());
    for (std::size_t e = 0; e < experts.size(); ++e) {
      const Tensor mine = chosen == static_cast<double>(e);
      const Tensor tokens = nonzero(sum(mine, 1)).select(1, 0);    // those that chose this expert
      const Var weight = sum(where(mine, weights, 0.0), 1, true);  // [N, 1]
      const Var output = experts[e](index_select(x, 0, tokens)) * index_select(weight, 0, tokens);
      y = scatter_add(y, 0, tokens.expand_dims(1).broadcast_to(output.shape()), output);
    }
    return y;
  }
  void params(auto&& visit) { visit("router", router), visit("experts", experts); }
};

struct Net {
  nn::Linear in, out;
  std::vector<nn::Sublayer<Experts, mhc::ManifoldConstrainedHC>> layers;

  Var operator()(const Var& x) const {
    auto streams = layers.front().connection.open(in(x));
    for (const auto& layer : layers) streams = layer(streams);
    return out(layers.back().connection.close(streams));
  }
  void params(auto&& visit) { visit("in", in), visit("out", out), visit("layers", layers); }
};

int main() {
  Rng rng(1);
  Net model{{8, C, rng}, {C, 1, rng}, {}};
  for (int i = 0; i < 2; ++i) model.layers.push_back({nn::RMSNorm(C), Experts(rng), {C, 4, rng, {.phi_std = 0.02}}});
  nn::AdamW optimizer({.lr = 0.005});
  const auto step = value_and_grad([](const Net& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); });
  double recent = 1;
  for (int i = 0; i <= 400; ++i) {
    // The largest of the first four numbers says which of the other four is the answer.
    const Tensor x = randn({256, 8}, rng), which = argmax(x.slice(1, 0, 4), 1, true);
    const auto [loss, grads] = step(model, x, gather(x.slice(1, 4, 8), 1, which));
    optimizer.step(model, grads);
    recent += 0.05 * (loss - recent);
    if (i % 100 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, recent);
  }
  return recent < 0.1 ? 0 : 1;
}

// LoRA: a frozen transformer learns a new task through small matrices beside its own.
#include <fmt/format.h>

#include <braid/braid.h>

using namespace braid;
using Model = nn::Transformer<>;

/// Updates b a of low rank for the matrices of a model's MLPs. arXiv:2106.09685.
struct LoRA {
  std::vector<Var> a, b;  // [rank, in], [out, rank] each

  LoRA(const Model& model, std::int64_t rank, Rng& rng) {
    for (const auto& [path, weight] : adapted(model).parameters) {
      a.push_back(nn::init::kaiming_uniform({rank, weight.size(1)}, rng));
      b.push_back(zeros({weight.size(0), rank}));
    }
  }
  static nn::Subset adapted(const Model& model) {
    return nn::subset(model, [](auto path) { return path.ends_with("up.weight") || path.ends_with("down.weight"); });
  }
  Model operator()(const Model& model) const {
    nn::Subset weights = adapted(model);
    for (std::size_t i = 0; i < a.size(); ++i) weights.parameters[i].second += matmul(b[i], a[i]);
    return nn::with(model, weights);
  }
  void params(auto&& visit) {
    visit("a", a);
    visit("b", b);
  }
};

/// Random symbols, then the same again or their mirror images. The second half can be predicted.
Tensor draw(bool mirrored, Rng& rng) {
  const Tensor symbols = randint(0, 16, {32, 12}, rng);
  return concat({symbols, mirrored ? 15.0 - symbols : Var(symbols)}, 1);
}

template <class M>
double train(M& trained, bool mirrored, Rng& rng, auto&& model_of) {
  fmt::print("{} parameters learn to {}\n", num_params(trained), mirrored ? "mirror" : "repeat");
  nn::AdamW optimizer({.lr = 0.005});
  const auto step = value_and_grad([&](const M& m, const Tensor& text) {
    return cross_entropy(slice(model_of(m).logits(text), 1, 11, 23), slice(text, 1, 12, 24));
  });
  for (int i = 0;; ++i) {
    const auto [loss, grads] = step(trained, draw(mirrored, rng));
    if (i % 100 == 0) fmt::print("step {:3}  loss {:.4f}\n", i, loss);
    if (i == 300) return loss;
    optimizer.step(trained, grads);
  }
}

int main() {
  Rng rng(1);
  Model model({.vocab = 16, .context = 24, .channels = 32, .layers = 2, .heads = 4}, rng);
  train(model, /*mirrored=*/false, rng, [](const Model& m) { return m; });
  LoRA lora(model, /*rank=*/2, rng);
  return train(lora, /*mirrored=*/true, rng, [&](const LoRA& l) { return l(model); }) < 0.1 ? 0 : 1;
}

#include <array>
#include <utility>

#include <braid/autograd/value_and_grad.h>
#include <braid/nn/clip.h>
#include <braid/nn/optim/adam.h>

#include <tests/golden/modules.h>
#include <tests/golden/transformer_model.h>

namespace braid::golden {

std::string golden_name(const std::string& path) {
  static constexpr std::array<std::pair<const char*, const char*>, 14> kNames{{
      {"attention", "attn"},
      {"connection", "conn"},
      {"embedding.weight", "embed"},
      {"positions", "pos"},
      {"norm.weight", "norm"},
      {"head.weight", "head"},
      {".q.weight", ".wq"},
      {".k.weight", ".wk"},
      {".v.weight", ".wv"},
      {".o.weight", ".wo"},
      {".up.weight", ".w1"},
      {".up.bias", ".b1"},
      {".down.weight", ".w2"},
      {".down.bias", ".b2"},
  }};
  std::string name = path;
  for (const auto& [ours, theirs] : kNames)
    if (const auto at = name.find(ours); at != name.npos) name.replace(at, std::string(ours).size(), theirs);
  return name;
}

nn::TransformerConfig transformer_config(const Case& golden) {
  const Config& config = golden.config;
  const Tensor& up = golden.tensor("param.blocks.0.mlp.w1");  // [ratio * C, C]
  return {.vocab = config.integer("vocab"),
          .context = config.integer("context"),
          .channels = config.integer("channels"),
          .layers = static_cast<int>(config.integer("layers")),
          .heads = static_cast<int>(config.integer("heads")),
          .mlp_ratio = up.size(0) / up.size(1),
          .dtype = up.dtype()};
}

namespace {

Tensors evaluate(const Case& golden) {
  const auto call = [&](const Arguments& a) {
    return with_transformer(golden, [&](auto model) {
      set_params(model, a, golden_name);
      const Var logits = model.logits(a["tokens"].value());
      return Outputs{{"y", cross_entropy(logits, a["targets"].value())}, {"logits", logits}};
    });
  };
  return differentiated("", call).evaluate(golden);
}

nn::AdamW optimizer(const Config& config) {
  const std::vector<double> betas = config.numbers("betas");
  return nn::AdamW({.lr = config.number("lr"),
                    .beta1 = betas.at(0),
                    .beta2 = betas.at(1),
                    .eps = config.number("eps"),
                    .weight_decay = config.number("weight_decay"),
                    .decays = nn::decay_everything});
}

/// One step a batch of in.tokens [steps, B, T]; the loss and the gradient's norm before each.
template <class Model>
Tensors train(const Case& golden, Model model) {
  Tape unused;
  set_params(model, Arguments(golden, unused), golden_name);
  for_each_param(model, [](const std::string&, Var& param) { param = detach(param); });
  auto loss_and_grads = value_and_grad([](const Model& m, const Tensor& x, const Tensor& y) { return m.loss(x, y); });
  nn::AdamW adam = optimizer(golden.config);
  const Tensor& tokens = golden.tensor("in.tokens");
  std::vector<double> losses, norms;
  for (std::int64_t step = 0; step < tokens.size(0); ++step) {
    auto [loss, grads] = loss_and_grads(model, tokens.select(0, step), golden.tensor("in.targets").select(0, step));
    losses.push_back(loss);
    norms.push_back(nn::clip_grad_norm(grads, golden.config.number("clip_grad_norm")));
    adam.step(model, grads);
  }
  Tensors results{{"out.losses", Tensor::of<double>({tokens.size(0)}, losses)},
                  {"out.grad_norms", Tensor::of<double>({tokens.size(0)}, norms)}};
  for_each_param(std::as_const(model), [&](const std::string& path, const Var& param) {
    results["final." + golden_name(path)] = param.value();
  });
  return results;
}

}  // namespace

std::vector<Module> transformer_modules() {
  const auto training = [](const Case& golden) {
    return with_transformer(golden, [&](auto model) { return train(golden, std::move(model)); });
  };
  return {
      {"transformer", {{"module", evaluate}}},
      // AdamW's first steps divide a gradient by its own size, so where it is near zero its rounding becomes a step.
      {"training", {{"AdamW", training}}, {}, {.f64 = 1e-9, .f32 = 1e-2}}};
}

}  // namespace braid::golden

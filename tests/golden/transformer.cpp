#include <array>
#include <utility>

#include <braid/autograd/value_and_grad.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/clip.h>

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

nn::TransformerConfig transformer_config(const RecordedCase& golden, DType flow) {
  const nn::CaseSettings& settings = golden.settings;
  const Tensor& up = golden.tensor("param.blocks.0.mlp.w1");  // [ratio * C, C]
  const nn::TransformerConfig config{.vocab = size(settings, "vocab"),
                                     .context = size(settings, "context"),
                                     .channels = size(settings, "channels"),
                                     .layers = static_cast<int>(size(settings, "layers")),
                                     .heads = static_cast<int>(size(settings, "heads")),
                                     .mlp_ratio = up.numel() / (up.size(-1) * up.size(-1)),
                                     .dtype = flow};
  const Shape expected{config.channels * config.mlp_ratio, config.channels};
  check_shape(up.shape() == expected, "param.blocks.0.mlp.w1 must have shape {} but has {}", expected, up.shape());
  golden.tensor(
      fmt::format("param.blocks.{}.mlp.w1", config.layers - 1));  // before a model with that many layers is made
  return config;
}

namespace {

Outputs call(const RecordedCase& golden, const CaseInputs& a, DType flow) {
  return with_transformer(golden, flow, [&](auto model) {
    nn::set_params(model, a, golden_name);
    const Var logits = model.logits(a["tokens"].value());
    return Outputs{{"y", cross_entropy(logits, a["targets"].value())}, {"logits", logits}};
  });
}

nn::Verification check(const RecordedCase& golden, const nn::VerifyOptions& options) {
  const auto in_dtype = [&](const CaseInputs& a) { return call(golden, a, options.dtype); };
  return nn::verify(golden, in_dtype, options);
}

nn::AdamW optimizer(const nn::CaseSettings& settings) {
  const std::vector<double> betas = settings.numbers("betas");
  return nn::AdamW({.lr = settings.number("lr"),
                    .beta1 = betas.at(0),
                    .beta2 = betas.at(1),
                    .eps = settings.number("eps"),
                    .weight_decay = settings.number("weight_decay"),
                    .decays = nn::decay_everything});
}

/// One step a batch of in.tokens [steps, B, T]; the loss and the gradient's norm before each.
template <class Model>
nn::NamedTensors train(const RecordedCase& golden, Model model) {
  Tape unused;
  nn::set_params(model, CaseInputs(golden, unused), golden_name);
  for_each_param(model, [](const std::string&, Var& param) { param = detach(param); });
  auto loss_and_grads = value_and_grad([](const Model& m, const Tensor& x, const Tensor& y) { return m.loss(x, y); });
  nn::AdamW adam = optimizer(golden.settings);
  const Tensor& tokens = golden.tensor("in.tokens");
  std::vector<double> losses, norms;
  for (std::int64_t step = 0; step < tokens.size(0); ++step) {
    auto [loss, grads] = loss_and_grads(model, tokens.select(0, step), golden.tensor("in.targets").select(0, step));
    losses.push_back(loss);
    norms.push_back(nn::clip_grad_norm(grads, golden.settings.number("clip_grad_norm")));
    adam.step(model, grads);
  }
  nn::NamedTensors results{{"out.losses", Tensor::of<double>({tokens.size(0)}, losses)},
                           {"out.grad_norms", Tensor::of<double>({tokens.size(0)}, norms)}};
  for_each_param(std::as_const(model), [&](const std::string& path, const Var& param) {
    results["final." + golden_name(path)] = param.value();
  });
  return results;
}

}  // namespace

std::vector<Module> transformer_modules() {
  const auto training = [](const RecordedCase& golden, const nn::VerifyOptions& options) {
    const RecordedCase converted = nn::to_dtype(golden, options.dtype);
    const auto results =
        with_transformer(converted, options.dtype, [&](auto model) { return train(converted, std::move(model)); });
    return nn::compare(converted, results, *options.tolerance);
  };
  return {
      {"transformer", {{"module", check, call, InBF16::what_flows}}},
      // AdamW's first steps divide a gradient by its own size, so where it is near zero its rounding becomes a step.
      {"training", {{"AdamW", training}}, {}, {.f64 = 1e-9, .f32 = 1e-2}}};
}

}  // namespace braid::golden

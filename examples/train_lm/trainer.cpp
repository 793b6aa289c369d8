#include "trainer.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/core/safetensors.h>
#include <braid/nn/clip.h>
#include <braid/nn/saving.h>

namespace braid::train_lm {
namespace {

constexpr double kTemperature = 0.8;

Model make_model(const Config& c, std::int64_t vocab, Rng& rng) {
  const nn::TransformerConfig sizes{.vocab = vocab,
                                    .context = c.context,
                                    .channels = c.channels,
                                    .layers = static_cast<int>(c.layers),
                                    .heads = static_cast<int>(c.heads)};
  const mhc::ConnectionConfig connection{.kind = mhc::connection_kind(c.connection)};
  return Model(sizes, rng, [&](int index) { return mhc::Connection(connection, c.channels, index, rng); });
}

/// Draws an id with probability softmax(logits / temperature).
std::int32_t draw(const Tensor& logits, Rng& rng) {
  std::vector<double> weights = logits.to_vector<double>();
  const double top = std::ranges::max(weights);
  double total = 0;
  for (double& w : weights) total += w = std::exp((w - top) / kTemperature);
  double rest = rng.uniform() * total;
  std::size_t id = 0;
  while (id + 1 < weights.size() && (rest -= weights[id]) >= 0) ++id;
  return static_cast<std::int32_t>(id);
}

}  // namespace

Trainer::Trainer(const Config& config, const Corpus& corpus)
    : config_(config),
      corpus_(corpus),
      rng_(config.seed),
      model_(make_model(config, corpus.vocab(), rng_)),
      optimizer_({.lr = config.lr, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = config.weight_decay}),
      learning_rate_(nn::warmup_cosine(
          {.peak = config.lr, .floor = config.min_lr, .warmup = config.warmup, .total = config.steps})) {}

StepResult Trainer::train_step() {
  const Batch batch = corpus_.sample(config_.batch, rng_);
  auto loss_and_grads = value_and_grad(
      [](const Model& model, const Tensor& tokens, const Tensor& targets) { return model.loss(tokens, targets); });
  auto [loss, grads] = loss_and_grads(model_, batch.tokens, batch.targets);
  const double norm = nn::clip_grad_norm(grads, config_.clip);
  optimizer_.set_lr(learning_rate_(step_));
  optimizer_.step(model_, grads);
  ++step_;
  return {loss, norm};
}

double Trainer::evaluate() const {
  double total = 0;
  std::int64_t count = 0;
  for (const Batch& batch : corpus_.held_out(4 * config_.batch)) {
    const std::int64_t tokens = batch.tokens.numel();
    total += model_.loss(batch.tokens, batch.targets).value().item() * static_cast<double>(tokens);
    count += tokens;
  }
  return total / static_cast<double>(count);
}

std::string Trainer::generate(std::int64_t length) const {
  Rng rng = Rng(config_.seed, ~std::uint64_t{0}).split();  // apart from the draws of training
  const std::string alphabet = corpus_.alphabet();
  std::vector<std::int32_t> ids{static_cast<std::int32_t>(std::max<std::size_t>(alphabet.find('\n'), 0) %
                                                          static_cast<std::size_t>(corpus_.vocab()))};
  for (std::int64_t i = 0; i < length; ++i) {
    const auto seen = std::min<std::int64_t>(config_.context, static_cast<std::int64_t>(ids.size()));
    const Tensor window =
        Tensor::of<std::int32_t>({1, seen}, std::span<const std::int32_t>(ids).last(static_cast<std::size_t>(seen)));
    ids.push_back(draw(model_.logits(window).value().select(1, -1).contiguous(), rng));
  }
  return corpus_.decode(std::span(ids).subspan(1));
}

void Trainer::save(const std::filesystem::path& checkpoint) const {
  nn::NamedTensors tensors;
  for (const auto& [name, t] : nn::to_tensors(model_)) tensors["model." + name] = t;
  for (const auto& [name, t] : optimizer_.state()) tensors["optimizer." + name] = t;
  save_safetensors(checkpoint, tensors,
                   {{"step", std::to_string(step_)},
                    {"rng_key", std::to_string(rng_.key())},
                    {"rng_draws", std::to_string(rng_.draws())},
                    {"alphabet", corpus_.alphabet()},
                    {"characters", std::to_string(corpus_.size())},
                    {"config", to_json(config_).dump()}});
}

void Trainer::load(const std::filesystem::path& checkpoint) {
  const auto file = load_safetensors(checkpoint);
  const auto entry = [&](const std::string& key) {
    const auto found = file.metadata.find(key);
    check<FileError>(found != file.metadata.end(), "{}: the checkpoint has no '{}'", checkpoint.string(), key);
    return found->second;
  };
  check_same_run(nlohmann::json::parse(entry("config")), config_);
  check_value(entry("alphabet") == corpus_.alphabet() && entry("characters") == std::to_string(corpus_.size()),
              "--resume: the run was started on another text");
  nn::NamedTensors parameters, moments;
  for (const auto& [name, t] : file.tensors) {
    if (name.starts_with("model.")) parameters[name.substr(6)] = t;
    if (name.starts_with("optimizer.")) moments[name.substr(10)] = t;
  }
  Model model = model_;
  nn::from_tensors(model, parameters, checkpoint.string());
  nn::AdamW optimizer = optimizer_;
  optimizer.load_state(model, moments);
  const Rng rng(std::stoull(entry("rng_key")), std::stoull(entry("rng_draws")));
  step_ = std::stoll(entry("step"));
  model_ = std::move(model);
  optimizer_ = std::move(optimizer);
  rng_ = rng;
}

}  // namespace braid::train_lm

#include "trainer.h"

#include <array>
#include <cmath>

#include <braid/autograd/value_and_grad.h>
#include <braid/mhc/history/mhc_block.h>
#include <braid/nn/accumulate.h>
#include <braid/nn/clip.h>
#include <braid/nn/subset.h>

#include "memory.h"

namespace braid::examples {
namespace {

TrainerState initial_state(const TrainerSettings& s, std::int64_t vocab) {
  check_value(s.blocks >= 1 && s.batch % s.blocks == 0,
              "Trainer: blocks must divide the batch of {} windows but are {}", s.batch, s.blocks);
  check_memory({.vocab = vocab,
                .context = s.context,
                .channels = s.channels,
                .layers = s.layers,
                .batch = s.batch / s.blocks,
                .streams = s.connection.kind == "residual" ? 1 : s.connection.streams.value_or(1)});
  const nn::TransformerConfig sizes{.vocab = vocab,
                                    .context = s.context,
                                    .channels = s.channels,
                                    .layers = static_cast<int>(s.layers),
                                    .heads = static_cast<int>(s.heads)};
  mhc::ConnectionConfig connection = connection_config(s.connection);
  connection.sublayers = 2 * s.layers;
  Rng rng(s.seed);
  Rng connection_rng = Rng(s.seed, std::uint64_t{1} << 63).split();  // leaves the draws of rng as they are
  Model model(sizes, rng, [&](int index) { return mhc::Connection(connection, s.channels, index, connection_rng); });
  check_value(s.trained == Trained::all || !nn::subset(model, in_connection).parameters.empty(),
              "Trainer: a model with {} connections has none to train", s.connection.kind);
  const nn::AdamW optimizer({.lr = s.lr, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = s.weight_decay});
  return {std::move(model), optimizer, rng};
}

std::string nonfinite_part(double loss, const Parametric auto& grads) {
  if (!std::isfinite(loss)) return "the loss";
  std::string first;
  for_each_param(grads, [&](const std::string& name, const Var& grad) {
    if (first.empty() && !is_finite(grad.value())) first = "the gradient of " + name;
  });
  return first;
}

}  // namespace

bool is_finite(const Tensor& x) {
  if (x.dtype() == DType::i32) return true;
  const std::array<const Tensor*, 1> tensor{&x};
  return std::isfinite(nn::global_norm(tensor));
}

bool in_connection(std::string_view path) { return path.find(".connection.") != std::string_view::npos; }

Trainer::Trainer(const TrainerSettings& settings, const Corpus& corpus)
    : settings_(settings),
      corpus_(corpus),
      state_(initial_state(settings, corpus.vocab())),
      learning_rate_(nn::warmup_cosine(
          {.peak = settings.lr, .floor = settings.min_lr, .warmup = settings.warmup, .total = settings.steps})) {}

StepResult Trainer::train_step() {
  Model& model = state_.model;
  const Batch batch = corpus_.sample(settings_.batch, state_.rng);
  StepResult result;
  if (settings_.trained == Trained::all) {
    result = descend(model, batch, [](const Model& m, const Tensor& tokens, const Tensor& targets) {
      return m.loss(tokens, targets);
    });
  } else {
    nn::Subset connections = nn::subset(model, in_connection);
    result = descend(connections, batch, [&](const nn::Subset& s, const Tensor& tokens, const Tensor& targets) {
      return nn::with(model, s).loss(tokens, targets);
    });
    model = nn::with(std::move(model), connections);
  }
  if (result.nonfinite.empty()) mhc::project(model);
  return result;
}

template <Parametric P, class Loss>
StepResult Trainer::descend(P& parameters, const Batch& batch, Loss loss_of) {
  const auto loss_and_grads = value_and_grad(loss_of);
  const std::int64_t size = settings_.batch / settings_.blocks;
  auto [loss, grads] = nn::accumulate(settings_.blocks, [&](std::int64_t block) {
    const auto part = [&](const Tensor& windows) { return windows.slice(0, block * size, (block + 1) * size); };
    return loss_and_grads(parameters, part(batch.tokens), part(batch.targets));
  });
  const double norm = nn::clip_grad_norm(grads, settings_.clip);
  ++state_.step;
  if (!std::isfinite(loss) || !std::isfinite(norm)) return {loss, norm, nonfinite_part(loss, grads)};
  state_.optimizer.set_lr(learning_rate_(state_.step - 1));
  state_.optimizer.step(parameters, grads);
  return {loss, norm, ""};
}

double Trainer::evaluate() const {
  double total = 0;
  std::int64_t count = 0;
  for (const Batch& batch : corpus_.held_out(4 * settings_.batch / settings_.blocks)) {
    const std::int64_t tokens = batch.tokens.numel();
    total += model().loss(batch.tokens, batch.targets).item() * static_cast<double>(tokens);
    count += tokens;
  }
  return total / static_cast<double>(count);
}

nn::PrecisionReport Trainer::precision() const {
  Rng rng = state_.rng;
  const Batch batch = corpus_.sample(settings_.batch, rng);
  return nn::precision_report(model(), [&](const Model& m) { return m.loss(batch.tokens, batch.targets); });
}

std::vector<mhc::ConnectionStats> Trainer::telemetry() const {
  const mhc::Telemetry telemetry;
  model().logits(corpus_.held_out(settings_.batch).front().tokens);
  return telemetry.connections();
}

}  // namespace braid::examples

#include "trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <braid/dist/accumulate.h>
#include <braid/mhc/connections/history/mhc_block.h>
#include <braid/nn/optim/clip.h>
#include <braid/nn/subset.h>

#include "exchange.h"
#include "memory.h"
#include "step_record.h"

namespace braid::apps {
namespace {

TrainerState initial_state(const TrainerSettings& s, std::int64_t vocab) {
  check_value(s.blocks >= 1 && s.batch % s.blocks == 0,
              "Trainer: blocks must divide the batch of {} windows but are {}", s.batch, s.blocks);
  check_memory({.vocab = s.architecture ? s.architecture->vocab : vocab,
                .context = s.context,
                .channels = s.channels,
                .layers = s.layers,
                .batch = s.batch / s.blocks,
                .streams = s.connection.kind == "residual" ? 1 : s.connection.streams.value_or(1)});
  Rng rng(s.seed);
  Model model = make_model(s, vocab, rng);
  const auto named = named_params(model);
  check_value(s.trained == Trained::all || std::ranges::any_of(named, in_connection, &NamedParam::name),
              "Trainer: a model with {} connections has none to train", s.connection.kind);
  const nn::AdamW optimizer({.lr = s.lr,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .weight_decay = s.weight_decay,
                             .decays = nn::decay_weights_only});  // not the maps and logits of connections
  return {std::move(model), optimizer, rng};
}

/// " of block B on rank R" for the first rank with a block that is not finite; empty for one rank. Collective.
std::string where(std::optional<std::int64_t> block, dist::Communicator& ranks) {
  if (ranks.size() == 1) return "";
  const auto found = gather(ranks, block ? std::vector{static_cast<double>(*block)} : std::vector<double>());
  for (std::size_t rank = 0; rank < found.size(); ++rank)
    if (!found[rank].empty()) return fmt::format(" of block {} on rank {}", found[rank].front(), rank);
  return "";
}

std::string nonfinite_part(const Parametric auto& grads) {
  std::string first;
  for_each_param(grads, [&](const std::string& name, const Var& grad) {
    if (first.empty() && !is_finite(grad.value())) first = "the gradient of " + name;
  });
  return first;
}

}  // namespace

Model make_model(const TrainerSettings& s, std::int64_t vocab, Rng& rng) {
  nn::TransformerConfig sizes = s.architecture.value_or(nn::TransformerConfig{.vocab = vocab,
                                                                              .context = s.context,
                                                                              .channels = s.channels,
                                                                              .layers = static_cast<int>(s.layers),
                                                                              .heads = static_cast<int>(s.heads)});
  sizes.dtype = s.dtype;
  check_value(vocab <= sizes.vocab, "Trainer: the text has {} ids but the pretrained model only {}", vocab,
              sizes.vocab);
  check_value(s.context <= sizes.context, "Trainer: the context has {} tokens but the pretrained model reads only {}",
              s.context, sizes.context);
  mhc::ConnectionConfig connection = connection_config(s.connection);
  connection.sublayers = 2 * s.layers;
  Rng connection_rng = Rng(s.seed, std::uint64_t{1} << 63).split();  // leaves the draws of rng as they are
  return Model(sizes, rng, [&](int index) { return mhc::Connection(connection, s.channels, index, connection_rng); });
}

bool is_finite(const Tensor& x) {
  if (x.dtype() == DType::i32) return true;
  const std::array<const Tensor*, 1> tensor{&x};
  return std::isfinite(nn::global_norm(tensor));
}

bool in_connection(std::string_view path) { return path.find(".connection.") != std::string_view::npos; }

Trainer::Trainer(const TrainerSettings& settings, const Corpus& corpus, std::shared_ptr<dist::Communicator> ranks)
    : settings_(settings),
      corpus_(corpus),
      ranks_(std::move(ranks)),
      state_(initial_state(settings, corpus.vocab())),
      learning_rate_(nn::warmup_cosine(
          {.peak = settings.lr, .floor = settings.min_lr, .warmup = settings.warmup, .total = settings.steps})) {}

StepResult Trainer::train_step(Observe observe) {
  Model& model = state_.model;
  const Batch batch = corpus_.sample(settings_.batch, state_.rng);
  StepResult result;
  if (settings_.trained == Trained::all) {
    result = descend(model, batch, observe, [](const Model& m, const Tensor& tokens, const Tensor& targets) {
      return m.loss(tokens, targets);
    });
  } else {
    nn::Subset connections = nn::subset(model, in_connection);
    result =
        descend(connections, batch, observe, [&](const nn::Subset& s, const Tensor& tokens, const Tensor& targets) {
          return nn::with(model, s).loss(tokens, targets);
        });
    model = nn::with(std::move(model), connections);
  }
  if (result.nonfinite.empty()) mhc::project(model);
  return result;
}

template <Parametric P, class Loss>
StepResult Trainer::descend(P& parameters, const Batch& batch, Observe observe, Loss loss_of) {
  const std::int64_t size = settings_.batch / settings_.blocks;
  std::optional<std::int64_t> nonfinite_block;
  const auto loss_of_block = [&](const P& p, std::int64_t block) {
    const auto part = [&](const Tensor& windows) { return windows.slice(0, block * size, (block + 1) * size); };
    const Var y = loss_of(p, part(batch.tokens), part(batch.targets));
    if (!nonfinite_block && !std::isfinite(y.item())) nonfinite_block = block;
    return y;
  };
  auto [loss, grads] = dist::accumulate(*ranks_, settings_.blocks, parameters, loss_of_block, observe.probe);
  StepResult result{.loss = loss, .nonfinite = ""};
  if (observe.gradients) {
    std::vector<Tensor> values;
    for_each_param(grads, [&](const std::string&, const Var& grad) { values.push_back(grad.value()); });
    result.gradients = checksum_of(values);
  }
  const auto [norm, factor] = nn::clipping(grads, settings_.clip);
  state_.optimizer.set_lr(learning_rate_(state_.step++));
  result.grad_norm = norm;
  if (!std::isfinite(loss)) result.nonfinite = "the loss" + where(nonfinite_block, *ranks_);
  if (result.nonfinite.empty() && !std::isfinite(norm)) result.nonfinite = nonfinite_part(grads);
  if (result.nonfinite.empty()) state_.optimizer.step(parameters, grads, factor);
  return result;
}

double Trainer::evaluate() const {
  const std::vector<Batch> batches = corpus_.held_out(4 * settings_.batch / settings_.blocks);
  const auto ranks = static_cast<std::size_t>(ranks_->size());
  std::vector<double> losses;  // of this rank's batches, every ranks-th one
  for (auto i = static_cast<std::size_t>(ranks_->rank()); i < batches.size(); i += ranks)
    losses.push_back(model().loss(batches[i].tokens, batches[i].targets).item());
  const std::vector<std::vector<double>> all = gather(*ranks_, losses);
  double total = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::int64_t tokens = batches[i].tokens.numel();
    total += all[i % ranks][i / ranks] * static_cast<double>(tokens);
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

}  // namespace braid::apps

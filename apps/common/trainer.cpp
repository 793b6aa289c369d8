#include "trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <braid/core/storage.h>
#include <braid/dist/accumulate.h>
#include <braid/mhc/connections/history/mhc_block.h>
#include <braid/nn/lora.h>
#include <braid/nn/optim/clip.h>

#include "exchange.h"
#include "memory.h"
#include "step_record.h"

namespace braid::apps {
namespace {

TrainingSizes sizes_of(const TrainerSettings& s, std::int64_t vocab) {
  return {.vocab = s.architecture ? s.architecture->vocab : vocab,
          .context = s.context,
          .channels = s.channels,
          .layers = s.layers,
          .batch = s.batch / s.blocks,
          .streams = s.connection.kind == "residual" ? 1 : s.connection.streams.value_or(1),
          .experts = s.experts,
          .experts_per_token = s.experts_per_token,
          .lora = s.lora,
          .connections_alone = s.trained == Trained::connections};
}

TrainerState initial_state(const TrainerSettings& s, std::int64_t vocab) {
  check_value(s.blocks >= 1 && s.batch % s.blocks == 0,
              "Trainer: blocks must divide the batch of {} windows but are {}", s.batch, s.blocks);
  check_memory(sizes_of(s, vocab));
  Rng rng(s.seed);
  Model model = make_model(s, vocab, rng);
  const auto named = named_params(model);
  check_value(s.trained == Trained::all || std::ranges::any_of(named, in_connection, &NamedParam::name),
              "Trainer: a model with {} connections has none to train", s.connection.kind);
  return {std::move(model), make_optimizer(s.optimizer, s.lr, s.weight_decay), rng};
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

double bytes_of_steps(TrainerSettings s, const Corpus& corpus) {
  s.steps = 2;
  s.warmup = 0;
  return planned_bytes(s.layers, s.connection.keep_every * s.connection.depth_block, [&](std::int64_t layers) {
    s.layers = layers;
    Trainer trainer(s, corpus);
    for (int step = 0; step < 2; ++step) trainer.train_step();
  });
}

/// The setting that saves memory, for a message, with what steps take then; empty if there is none.
std::string saving(TrainerSettings s, const Corpus& corpus) {
  if (!to_json(s.connection).contains("keep_every") || s.connection.keep_every > 1) return "";
  s.connection.keep_every = mhc::keep_interval(*connection_config(s.connection).streams, 2 * s.layers);
  if (s.connection.keep_every == 1) return "";
  return fmt::format("--keep-every {} ({:.3g} GB), ", s.connection.keep_every, bytes_of_steps(s, corpus) / 1e9);
}

}  // namespace

void check_memory_of_steps(const TrainerSettings& s, const Corpus& corpus, double available) {
  const TrainingSizes sizes = sizes_of(s, corpus.vocab());
  check_memory(sizes);
  if (s.architecture || 4 * least_bytes(sizes) <= available) return;
  const double planned = bytes_of_steps(s, corpus);
  check_value(planned <= available,
              "steps of these sizes take {:.3g} GB but {:.3g} GB of memory are free; try {}more --blocks or a smaller "
              "--batch",
              planned / 1e9, available / 1e9, planned > available ? saving(s, corpus) : "");
  release_cached_memory();
}

Model make_model(const TrainerSettings& s, std::int64_t vocab, Rng& rng) {
  nn::TransformerConfig sizes = s.architecture.value_or(nn::TransformerConfig{.vocab = vocab,
                                                                              .context = s.context,
                                                                              .channels = s.channels,
                                                                              .layers = static_cast<int>(s.layers),
                                                                              .heads = static_cast<int>(s.heads)});
  if (s.experts > 0) {  // as many operations for a token as the MLP has
    sizes.experts = nn::ExpertsSettings{.experts = static_cast<int>(s.experts),
                                        .top = static_cast<int>(s.experts_per_token),
                                        .routing = nn::Routing::sigmoid,
                                        .correction = true};
    sizes.activation = nn::Activation::swiglu;
    sizes.mlp_bias = false;
    sizes.hidden = std::max<std::int64_t>(1, sizes.mlp_ratio * s.channels * 2 / (3 * s.experts_per_token));
  }
  sizes.value_residual = s.value_residual;
  sizes.dtype = s.dtype;
  check_value(vocab <= sizes.vocab, "Trainer: the text has {} ids but the pretrained model only {}", vocab,
              sizes.vocab);
  check_value(s.context <= sizes.context, "--context: {} tokens are more than the {} that the pretrained model reads",
              s.context, sizes.context);
  mhc::ConnectionConfig connection = connection_config(s.connection);
  connection.sublayers = 2 * s.layers;
  Rng connection_rng = Rng(s.seed, std::uint64_t{1} << 63).split();  // leaves the draws of rng as they are
  Model model(sizes, rng, [&](int index) {
    return sizes.streams ? mhc::pretrained_connection(sizes, index)
                         : mhc::Connection(connection, s.channels, index, connection_rng);
  });
  if (s.lora > 0) nn::add_lora(model, connection_rng, {.rank = s.lora});
  return model;
}

bool is_finite(const Tensor& x) {
  if (x.dtype() == DType::i32) return true;
  const std::array<const Tensor*, 1> tensor{&x};
  return std::isfinite(nn::global_norm(tensor));
}

std::optional<nn::Subset> trained_part(const Model& model, const TrainerSettings& s) {
  if (s.lora == 0 && s.trained == Trained::all) return std::nullopt;
  return nn::subset(model, [&](std::string_view path) {
    return (s.lora > 0 && nn::in_lora(path)) || (s.trained == Trained::connections && in_connection(path));
  });
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
  const nn::RouteScope taken;
  if (std::optional<nn::Subset> part = trained_part(model, settings_)) {
    result = descend(*part, batch, observe, [&](const nn::Subset& s, const Tensor& tokens, const Tensor& targets) {
      return nn::with(model, s).loss(tokens, targets);
    });
    model = nn::with(std::move(model), *part);
  } else {
    result = descend(model, batch, observe, [](const Model& m, const Tensor& tokens, const Tensor& targets) {
      return m.loss(tokens, targets);
    });
  }
  if (result.nonfinite.empty()) mhc::project(model);
  if (result.nonfinite.empty() && settings_.experts > 0) rebalance_experts(taken);
  return result;
}

void Trainer::rebalance_experts(const nn::RouteScope& taken) {
  const auto layers = state_.model.blocks.size(), experts = static_cast<std::size_t>(settings_.experts);
  std::vector<double> loads(layers * experts);  // [layer, expert], whole numbers
  for (std::size_t i = 0; i < taken.routes.size(); ++i) {
    const std::vector<std::int64_t> its = taken.routes[i].loads();
    for (std::size_t e = 0; e < experts; ++e) loads[i % layers * experts + e] += static_cast<double>(its[e]);
  }
  std::vector<std::int64_t> all(loads.size());
  for (const std::vector<double>& of_rank : gather(*ranks_, loads))
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += static_cast<std::int64_t>(of_rank[i]);
  for (std::size_t layer = 0; layer < layers; ++layer)
    std::get<nn::Experts>(state_.model.blocks[layer].mlp.body.layer)
        .rebalance(std::span(all).subspan(layer * experts, experts), 1e-3);  // the rate of arXiv:2408.15664
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
  as_optimizer(state_.optimizer).set_lr(learning_rate_(state_.step++));
  result.grad_norm = norm;
  if (!std::isfinite(loss)) result.nonfinite = "the loss" + where(nonfinite_block, *ranks_);
  if (result.nonfinite.empty() && !std::isfinite(norm)) result.nonfinite = nonfinite_part(grads);
  if (result.nonfinite.empty()) as_optimizer(state_.optimizer).step(parameters, grads, factor);
  return result;
}

double Trainer::evaluate() const {
  constexpr std::int64_t kLogits = 1 << 26;  // of a batch, unless one window alone has more
  const std::int64_t of_window = settings_.context * model().config.vocab;
  const std::vector<Batch> batches =
      corpus_.held_out(std::clamp<std::int64_t>(kLogits / of_window, 1, 4 * settings_.batch / settings_.blocks));
  const auto ranks = static_cast<std::size_t>(ranks_->size());
  std::vector<double> losses;  // of this rank's batches, every ranks-th one
  for (auto i = static_cast<std::size_t>(ranks_->rank()); i < batches.size(); i += ranks)
    losses.push_back(model().loss(batches[i].tokens, batches[i].targets).item());
  release_cached_memory();  // blocks of sizes that no step has
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
  model().logits(corpus_.held_out(settings_.batch / settings_.blocks).front().tokens);
  return telemetry.connections();
}

}  // namespace braid::apps

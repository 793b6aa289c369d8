#include "run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <ostream>
#include <sstream>

#include <nlohmann/json.hpp>

#include <braid/autograd/value_and_grad.h>
#include <braid/mhc/connections/history/mhc_block.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/schedule.h>

#include "deep_mlp.h"
#include "deep_transformer.h"
#include "losses.h"
#include "probe.h"
#include "sharpness.h"

namespace braid::stability {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBeta1 = 0.9, kBeta2 = 0.99;

Json settings_line(const RunSettings& run, const TaskConfig& sizes) {
  return {{"run", id(run)},
          {"task", name(run.task)},
          {"mode", name(run.mode)},
          {"variant", label(run.mode, run.variant)},
          {"sublayers", sizes.sublayers},
          {"learning_rate", run.learning_rate},
          {"seed", run.seed}};
}

/// Without warmup, the effect of Adam's first steps on the head hides that of depth.
nn::Schedule warmup(double rate, const TaskConfig& sizes) {
  return nn::warmup_cosine({.peak = rate, .floor = rate, .warmup = sizes.warmup, .total = sizes.steps});
}

template <class Model>
double gradient_norm(const Model& grads) {
  std::vector<const Tensor*> tensors;
  for_each_param(grads, [&](const std::string&, const Var& grad) { tensors.push_back(&grad.value()); });
  return nn::global_norm(tensors);
}

/// Runs of one seed share weights, data and batches in all modes: connections draw from a generator of their own.
template <class Data>
class Training {
 public:
  using Model = typename Data::Model;

  Training(const Config& config, const RunSettings& run)
      : config_(config),
        rng_(run.seed),
        connection_rng_(rng_.split()),
        data_rng_(rng_.split()),
        batch_rng_(rng_.split()),
        data_(config.task(run.task), data_rng_),
        model_(data_.model(connection_config(run.mode, run.variant), rng_, connection_rng_)),
        probe_inputs_(data_.sample(batch_rng_).inputs),
        sharpness_every_(config.task(run.task).sharpness_every),
        learning_rate_(warmup(run.learning_rate, config.task(run.task))),
        adam_({.lr = run.learning_rate, .beta1 = kBeta1, .beta2 = kBeta2, .weight_decay = 0}),
        optimizer_(adam_),
        losses_(config.divergence) {}

  /// Writes one line per step and the result.
  void run(std::int64_t steps, std::ostream& out) {
    for (std::int64_t step = 1; step <= steps; ++step) {
      const Batch batch = data_.sample(batch_rng_);
      const auto [loss, grads] = value_and_grad(loss_of)(model_, batch);
      losses_.add(loss);
      optimizer_.set_lr(learning_rate_(step - 1));
      const bool last = step == steps || losses_.diverged();
      Json line{{"step", step}, {"loss", loss}, {"gradient_norm", gradient_norm(grads)}};
      // Maps that are not finite have no gains.
      if (std::isfinite(loss) && (last || step == 1 || step % config_.probe_every == 0)) {
        probe_ = probe(model_, grads, probe_inputs_);
        line["sublayers"] = to_json(probe_);
      }
      if (std::isfinite(loss) && sharpness_every_ && step % *sharpness_every_ == 0)
        line["sharpness"] = to_json(curvature(batch, grads));
      out << line << "\n";
      if (last || !out) break;  // the file can take no more: whoever opened it says so
      optimizer_.step(model_, grads);
      mhc::project(model_);
    }
    Json result = losses_.result();
    result.update(summary(probe_));
    out << result << "\n";
  }

 private:
  static Var loss_of(const Model& model, const Batch& batch) {
    return Data::loss(forward(model, batch.inputs, [](const auto&) {}), batch.targets);
  }

  /// Of the loss on a batch, in f64, whose rounding does not hide eigenvalues.
  Sharpness curvature(const Batch& batch, const Model& grads) const {
    const auto exact = [](const Tensor& x) { return x.dtype() == DType::f32 ? x.to(DType::f64) : x; };
    const Batch data{exact(batch.inputs), exact(batch.targets)};
    return sharpness([&](const Model& model) { return loss_of(model, data); }, nn::to_dtype(model_, DType::f64), grads,
                     optimizer_, adam_);
  }

  const Config& config_;
  Rng rng_, connection_rng_, data_rng_, batch_rng_;
  Data data_;
  Model model_;
  Tensor probe_inputs_;
  std::optional<std::int64_t> sharpness_every_;
  nn::Schedule learning_rate_;
  nn::AdamWSettings adam_;
  nn::AdamW optimizer_;
  Losses losses_;
  Probe probe_;
};

template <class Data>
void train_on(const Config& config, const RunSettings& run, std::int64_t steps, std::ostream& out) {
  out << settings_line(run, config.task(run.task)) << "\n";
  Training<Data>(config, run).run(steps, out);
}

void train(const Config& config, const RunSettings& run, std::int64_t steps, std::ostream& out) {
  switch (run.task) {
    case Task::mlp_regression: return train_on<TeacherStudent>(config, run, steps, out);
    case Task::mlp_classification: return train_on<Clusters>(config, run, steps, out);
    case Task::transformer: return train_on<NextCharacter>(config, run, steps, out);
  }
}

}  // namespace

void train_run(const Config& config, const RunSettings& run, std::ostream& out) {
  train(config, run, config.task(run.task).steps, out);
}

double seconds_per_step(const Config& config, const RunSettings& run) {
  constexpr std::int64_t kSteps = 3;  // with setup and two probes they take as long as about five
  constexpr int kRepetitions = 2;     // the first one also fills caches
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepetitions; ++i) {
    std::ostringstream nowhere;
    const auto start = std::chrono::steady_clock::now();
    train(config, run, kSteps, nowhere);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    least = std::min(least, elapsed.count() / (kSteps + 2));
  }
  return least;
}

}  // namespace braid::stability

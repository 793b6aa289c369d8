#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/bits.h>
#include <braid/core/products/matmul_precision.h>
#include <braid/core/random.h>
#include <braid/dist/communicator.h>
#include <braid/mhc/connection.h>
#include <braid/mhc/streams/telemetry.h>
#include <braid/nn/optim/schedule.h>
#include <braid/nn/subset.h>
#include <braid/nn/transformer.h>
#include <braid/nn/verify/precision_report.h>

#include "connection_options.h"
#include "corpus.h"
#include "optimizer.h"

namespace braid::apps {

using Model = nn::Transformer<mhc::Connection>;

/// Whether all elements of `x` are finite.
bool is_finite(const Tensor& x);

/// The parameters that training changes.
enum class Trained { all, connections };

/// The settings of training on a text. With the text, they determine the numbers of a run.
struct TrainerSettings {
  ConnectionOptions connection = {};
  std::int64_t layers = 4, channels = 128, heads = 4, context = 64, batch = 12;
  std::int64_t experts = 0, experts_per_token = 2;  ///< in place of each MLP; 0: none
  std::int64_t lora = 0;                            ///< the rank of changes of all Linears; 0: none
  bool value_residual = false;                      ///< see nn::AttentionSettings
  std::string optimizer = "adamw";
  DType dtype = DType::f32;                                     ///< of the activations, f32 or bf16
  MatmulPrecision matmul_precision = MatmulPrecision::highest;  ///< of f32 products; the program must set it globally
  Bits bits = Bits::fast;                                       ///< of all results; the program must open a BitsScope
  std::optional<nn::TransformerConfig> architecture = {};  ///< a pretrained model's; the sizes above are equal to its
  std::int64_t blocks = 1;  ///< blocks of equal size that a batch is cut into: see nn::accumulate
  Trained trained = Trained::all;
  std::int64_t steps = 2000, warmup = 100;
  double lr = 1e-3, min_lr = 1e-4, weight_decay = 0.1, clip = 1.0;
  std::uint64_t seed = 1;
};

/// A model with new weights, drawn from `rng`; those of its connections come from the seed. Throws ValueError when a
/// pretrained architecture has fewer ids than `vocab`, or a shorter context than the settings.
Model make_model(const TrainerSettings& settings, std::int64_t vocab, Rng& rng);

/// The state of training: everything that a step changes.
struct TrainerState {
  Model model;
  AnyOptimizer optimizer;
  Rng rng;  ///< draws the batches
  std::int64_t step = 0;
  std::optional<double> best_held_out = {};  ///< the lowest loss of an evaluation
};

/// The result of one training step.
struct StepResult {
  double loss = 0, grad_norm = 0;
  std::string nonfinite;       ///< the loss or the first gradient that is not finite; then weights do not change
  std::string gradients = {};  ///< the checksum of the gradients, if it was asked for
};

/// What to observe of a step.
struct Observe {
  bool gradients = false;  ///< their checksum
  Probe* probe = nullptr;  ///< the ops of this rank's blocks
};

/// Whether a parameter of a model belongs to one of its connections.
bool in_connection(std::string_view path);

/// The parameters that training changes, if it leaves others as they are: those of LoRA and those of the connections,
/// as the settings say.
std::optional<nn::Subset> trained_part(const Model& model, const TrainerSettings& settings);

/// Throws ValueError when two steps of models with few layers tell that those of all layers take more than `available`
/// bytes; the message says what takes less. Takes no step where check_memory() leaves no doubt, by a factor of four,
/// nor for pretrained architectures.
void check_memory_of_steps(const TrainerSettings& settings, const Corpus& corpus, double available);

/// Trains a transformer on a corpus, which must outlive it. With one seed, models that differ in their connections
/// alone start from the same weights and see the same batches. Several ranks, each with a trainer in the same state,
/// get the results of one process.
class Trainer {
 public:
  /// Throws ValueError when a setting is out of its range, no parameter is trained, or the model does not fit into
  /// memory.
  Trainer(const TrainerSettings& settings, const Corpus& corpus,
          std::shared_ptr<dist::Communicator> ranks = std::make_shared<dist::Communicator>());

  const TrainerState& state() const { return state_; }
  TrainerState& state() { return state_; }
  void restore(TrainerState state) { state_ = std::move(state); }
  std::int64_t step() const { return state_.step; }
  const Model& model() const { return state_.model; }
  nn::Schedule& learning_rate() { return learning_rate_; }

  // Collective: every rank calls these two.

  /// One batch: forward and backward for each of its blocks, clipping, the optimizer, the connections' projections, and
  /// the corrections of experts.
  StepResult train_step(Observe observe = {});
  /// The mean loss over the held-out part.
  double evaluate() const;

  /// The relative errors of the next step's gradients, compared with f64. Does not change the trainer.
  nn::PrecisionReport precision() const;
  /// The statistics of the connections on the first held-out batch.
  std::vector<mhc::ConnectionStats> telemetry() const;

 private:
  /// Corrects the experts by the routes of this step on all ranks. Collective.
  void rebalance_experts(const nn::RouteScope& taken);

  /// One step of `parameters` on the mean of `loss(parameters, tokens, targets)` over the blocks.
  template <Parametric P, class Loss>
  StepResult descend(P& parameters, const Batch& batch, Observe observe, Loss loss);

  TrainerSettings settings_;
  const Corpus& corpus_;
  std::shared_ptr<dist::Communicator> ranks_;
  TrainerState state_;
  nn::Schedule learning_rate_;
};

}  // namespace braid::apps

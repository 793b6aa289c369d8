#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/products/matmul_precision.h>
#include <braid/core/random.h>
#include <braid/dist/communicator.h>
#include <braid/mhc/connection.h>
#include <braid/mhc/streams/telemetry.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/optim/schedule.h>
#include <braid/nn/transformer.h>
#include <braid/nn/verify/precision_report.h>

#include "connection_options.h"
#include "corpus.h"

namespace braid::examples {

using Model = nn::Transformer<mhc::Connection>;

/// Whether all elements are.
bool is_finite(const Tensor& x);

/// Which parameters are trained; the bits of the others stay.
enum class Trained { all, connections };

/// What is learned from a text, and how: with the text, all that a run's numbers depend on.
struct TrainerSettings {
  ConnectionOptions connection = {};
  std::int64_t layers = 4, channels = 128, heads = 4, context = 64, batch = 12;
  DType dtype = DType::f32;                                     ///< of the activations, f32 or bf16
  MatmulPrecision matmul_precision = MatmulPrecision::highest;  ///< of products of f32; the program's to set
  std::optional<nn::TransformerConfig> architecture = {};  ///< of a pretrained model, the sizes above are then its own
  std::int64_t blocks = 1;  ///< of equal size, which a batch is cut into: see nn::accumulate
  Trained trained = Trained::all;
  std::int64_t steps = 2000, warmup = 100;
  double lr = 1e-3, min_lr = 1e-4, weight_decay = 0.1, clip = 1.0;
  std::uint64_t seed = 1;
};

/// With new weights, those of `rng` but for the connections, whose come from the seed. Throws ValueError when a
/// pretrained architecture has fewer ids than `vocab`, or reads fewer tokens at once than the context has.
Model make_model(const TrainerSettings& settings, std::int64_t vocab, Rng& rng);

/// All that training changes.
struct TrainerState {
  Model model;
  nn::AdamW optimizer;
  Rng rng;  ///< draws the batches
  std::int64_t step = 0;
  std::optional<double> best_held_out = {};  ///< the lowest loss of an evaluation
};

/// What one training step told.
struct StepResult {
  double loss = 0, grad_norm = 0;
  std::string nonfinite;  ///< what is not: the loss, or the first such gradient; then the weights stay as they are
};

/// Whether a parameter of a model belongs to one of its connections.
bool in_connection(std::string_view path);

/// Trains a transformer on a corpus, which must outlive it. With one seed, models that differ in their connections
/// alone start from the same weights and see the same batches. Several ranks, each with a trainer in the same state,
/// find what one alone finds.
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

  // Where there are several ranks, each calls these two.

  /// One batch: forward and backward for each of its blocks, clipping, AdamW, and the connections' projections.
  StepResult train_step();
  /// The mean loss over the held-out part.
  double evaluate() const;

  /// How precise the gradients of the next step are; it changes nothing.
  nn::PrecisionReport precision() const;
  /// What the connections do to the first held-out batch.
  std::vector<mhc::ConnectionStats> telemetry() const;

 private:
  /// Of `loss(parameters, tokens, targets)`.
  template <Parametric P, class Loss>
  StepResult descend(P& parameters, const Batch& batch, Loss loss);

  TrainerSettings settings_;
  const Corpus& corpus_;
  std::shared_ptr<dist::Communicator> ranks_;
  TrainerState state_;
  nn::Schedule learning_rate_;
};

}  // namespace braid::examples

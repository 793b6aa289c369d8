#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <braid/core/random.h>
#include <braid/mhc/connection.h>
#include <braid/nn/optim/adam.h>
#include <braid/nn/schedule.h>
#include <braid/nn/transformer.h>

#include "config.h"
#include "corpus.h"

namespace braid::train_lm {

using Model = nn::Transformer<mhc::Connection>;

/// What one training step told.
struct StepResult {
  double loss, grad_norm;
};

/// A training run: the model, its optimizer, where in the run it is, and the generator that draws its batches.
class Trainer {
 public:
  Trainer(const Config& config, const Corpus& corpus);

  std::int64_t step() const { return step_; }
  const Model& model() const { return model_; }

  /// One batch: forward, backward, clipping, AdamW.
  StepResult train_step();
  /// The mean loss over the held-out part.
  double evaluate() const;
  /// Continues a line break by `length` characters drawn at temperature 0.8.
  std::string generate(std::int64_t length) const;

  /// Model, optimizer, step and generator, so that load() continues bit for bit.
  void save(const std::filesystem::path& checkpoint) const;
  /// Throws FileError or ValueError, with this run unchanged, when the file is damaged or of another run.
  void load(const std::filesystem::path& checkpoint);

 private:
  Config config_;
  const Corpus& corpus_;
  Rng rng_;
  Model model_;
  nn::AdamW optimizer_;
  nn::Schedule learning_rate_;
  std::int64_t step_ = 0;
};

}  // namespace braid::train_lm

#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace braid::apps {

/// The sizes that determine the memory of training a transformer.
struct TrainingSizes {
  std::int64_t vocab, context, channels, layers, batch, streams;
  double bytes = 4;                                 ///< per element of parameters and activations
  std::int64_t experts = 0, experts_per_token = 1;  ///< in place of each MLP; 0: none
  std::int64_t lora = 0;           ///< the rank of changes of all linear maps, trained in place of these
  bool connections_alone = false;  ///< whether, beside such changes, connections alone are trained
};

/// Every parameter, three times as much for each that is trained (gradient and two moments), and what the simplest
/// layers save for the backward pass.
double least_bytes(const TrainingSizes& sizes);

/// Throws ValueError, whose message begins with `what`, when less than `bytes` of memory are free for this process.
void check_memory(const std::string& what, double bytes);

/// Throws ValueError when least_bytes() is more memory than is free for this process.
void check_memory(const TrainingSizes& sizes);

/// The bytes of all tensors, and of the cache.
double held_bytes();

/// What held_bytes() grows by in training a model of so many layers, from what it grows by in training two models of
/// fewer: `train(layers)` takes two steps. `period` is the number of sublayers after which what they save repeats; a
/// model of two layers and such a period or less is trained itself. Leaves the last model's blocks in the cache.
double planned_bytes(std::int64_t layers, std::int64_t period, const std::function<void(std::int64_t)>& train);

}  // namespace braid::apps

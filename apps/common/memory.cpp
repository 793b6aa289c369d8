#include "memory.h"

#include <braid/core/error.h>
#include <braid/core/storage.h>

#include "../platform/memory.h"

namespace braid::apps {

double least_bytes(const TrainingSizes& s) {
  const auto c = static_cast<double>(s.channels), n = static_cast<double>(s.streams);
  const auto layers = static_cast<double>(s.layers), vocab = static_cast<double>(s.vocab);
  const double tokens = static_cast<double>(s.batch) * static_cast<double>(s.context);
  const double maps = n > 1 ? 2 * n * c * (n * n + 2 * n) : 0;  // of the two connections of a layer
  const double experts = static_cast<double>(s.experts) / static_cast<double>(s.experts_per_token);
  const double mlp = s.experts == 0 ? 8 * c * c : experts * 8 * c * c;
  const double changes = static_cast<double>(s.lora) * (layers * 18 * c + c + vocab);
  const double connections = layers * maps;
  const double others = 2 * vocab * c + static_cast<double>(s.context) * c + layers * (4 * c * c + mlp);
  const bool trains_all = s.lora == 0 && !s.connections_alone;
  const double trained = changes + (trains_all || s.connections_alone ? connections : 0) + (trains_all ? others : 0);
  const double kept = tokens * (layers * c * (16 + (n > 1 ? 2 * n : 0)) + vocab);
  return s.bytes * (connections + others + changes + 3 * trained + kept);
}

void check_memory(const std::string& what, double bytes) {
  const double available = platform::available_bytes();
  check_value(bytes <= available, "{} take at least {:.3g} GB but {:.3g} GB of memory are free", what, bytes / 1e9,
              available / 1e9);
}

void check_memory(const TrainingSizes& sizes) {
  check_memory("a model and batches of these sizes", least_bytes(sizes));
}

double held_bytes() {
  const MemoryStats stats = memory_stats();
  return static_cast<double>(stats.live_bytes + stats.cached_bytes);
}

double planned_bytes(std::int64_t layers, std::int64_t period, const std::function<void(std::int64_t)>& train) {
  const std::int64_t step = period % 2 == 0 ? period / 2 : period;  // in layers, of two sublayers
  const auto held_by = [&](std::int64_t fewer) {
    release_cached_memory();
    const double before = held_bytes();
    train(fewer);
    return held_bytes() - before;
  };
  if (layers <= 2 + step) return held_by(layers);
  const std::int64_t few = 2 + (layers - 2) % step, more = few + step;
  const double of_few = held_by(few), of_more = held_by(more);
  return of_more + (of_more - of_few) * static_cast<double>(layers - more) / static_cast<double>(step);
}

}  // namespace braid::apps

#pragma once
#include <cstdint>
#include <string>

namespace braid::examples {

/// What the memory that training a transformer takes depends on.
struct TrainingSizes {
  std::int64_t vocab, context, channels, layers, batch, streams;
  double bytes = 4;  ///< of an element
};

/// Throws ValueError, which begins with `what`, when this process cannot have `bytes` of memory.
void check_memory(const std::string& what, double bytes);

/// Throws ValueError when training takes more memory than this process can have: at least four copies of every
/// parameter (gradient and moments) and what the simplest layers keep for the backward pass.
void check_memory(const TrainingSizes& sizes);

}  // namespace braid::examples

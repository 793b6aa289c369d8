#pragma once
#include <vector>

#include <braid/dist/communicator.h>
#include <braid/nn/saving.h>

namespace braid::apps {

// Collective: every rank calls these, in the same order.

/// The lists of all ranks, in the order of ranks; they may differ in length.
std::vector<std::vector<double>> gather(dist::Communicator& ranks, const std::vector<double>& numbers);
/// The tensors of rank 0; those of the other ranks are ignored.
nn::NamedTensors broadcast(dist::Communicator& ranks, const nn::NamedTensors& tensors);

}  // namespace braid::apps

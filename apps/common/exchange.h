#pragma once
#include <vector>

#include <braid/dist/communicator.h>
#include <braid/nn/saving.h>

namespace braid::examples {

// Every rank calls these, in the same order.

/// The numbers of all ranks, in order; each gives one list.
std::vector<std::vector<double>> gather(dist::Communicator& ranks, const std::vector<double>& numbers);
/// The tensors of rank 0.
nn::NamedTensors broadcast(dist::Communicator& ranks, const nn::NamedTensors& tensors);

}  // namespace braid::examples

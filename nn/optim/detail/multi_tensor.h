#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/parallel.h>
#include <braid/core/tensor.h>

namespace braid::nn {

/// Elements [begin, end) of one of several tensors.
struct TensorBlock {
  std::size_t tensor;
  std::int64_t begin, end;
};

/// Cuts tensors of these sizes into blocks of at most 16384 elements, by the sizes alone: f32 values, gradients and two
/// moments of a block fit into a 2 MB L2 cache, and a block is long against the 0.1 us that handing it out costs.
std::vector<TensorBlock> cut_into_blocks(std::span<const std::int64_t> sizes);

/// Calls f(i, block) for each block i on all threads: one pass over many tensors, most of which are small.
template <class F>
void parallel_for_blocks(std::span<const TensorBlock> blocks, F&& f) {
  parallel_for(static_cast<std::int64_t>(blocks.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) f(i, blocks[i]);
  });
}

/// Makes `t` writable through mutable_data: contiguous, and not shared with any other tensor. Copies only if needed.
void make_writable(Tensor& t);

}  // namespace braid::nn

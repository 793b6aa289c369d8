#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <vector>

#include <braid/core/parallel.h>
#include <braid/core/tensor.h>

namespace braid::nn {

/// Elements [begin, end) of one of several tensors, and the number of the block.
struct TensorBlock {
  std::size_t index, tensor;
  std::int64_t begin, end;
};

/// Cuts tensors, given by a range of pointers, into blocks of at most 16384 elements, by the sizes alone: f32 values,
/// gradients and two moments of a block fit into a 2 MB L2 cache, and the 0.1 us of scheduling a block do not count.
std::vector<TensorBlock> cut_into_blocks(const auto& tensors) {
  constexpr std::int64_t kBlock = 16384;
  std::vector<TensorBlock> blocks;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::int64_t begin = 0; begin < tensors[i]->numel(); begin += kBlock)
      blocks.push_back({blocks.size(), i, begin, std::min(begin + kBlock, tensors[i]->numel())});
  return blocks;
}

/// Calls f(T{}, block) for each block of the tensors to which `tensor_of` maps a range, T being the type of their
/// elements, on all threads: one pass over many tensors, most of which are small.
void for_each_block(const char* op, const auto& range, const auto& tensor_of, const auto& f) {
  const auto tensors = range | std::views::transform(tensor_of);
  const std::vector<TensorBlock> blocks = cut_into_blocks(tensors);
  braid::detail::parallel_for_each(std::ssize(blocks), 1, 1, [&](std::int64_t i) {
    const TensorBlock& block = blocks[static_cast<std::size_t>(i)];
    dispatch_float(op, tensors[block.tensor]->dtype(), [&](auto zero) { f(zero, block); });
  });
}

/// Makes `t` writable through mutable_data: contiguous, and not shared with any other tensor. Copies only if needed.
inline void make_writable(Tensor& t) {
  if (!t.unshared() || !t.is_contiguous()) t = t.clone();
}

}  // namespace braid::nn

#pragma once
#include <algorithm>
#include <cstdint>

#include <braid/core/parallel.h>
#include <braid/core/shape.h>

namespace braid::kernels {

/// A tensor [..., width] as rows, and the blocks of rows that a thread takes at a time: at least 16384 elements,
/// at most 64 blocks, so that sums over rows have few partial results.
struct Rows {
  std::int64_t count, width, block;

  explicit Rows(const Shape& shape)
      : count(shape.without(-1).numel()),
        width(shape[-1]),
        block(std::max({std::int64_t{1}, 16384 / std::max<std::int64_t>(width, 1), (count + 63) / 64})) {}

  std::int64_t blocks() const { return (count + block - 1) / block; }

  /// Calls f(first_row, rows, block_index) for all blocks on all threads.
  template <class F>
  void for_each_block(F f) const {
    parallel_for(count, block, [&](std::int64_t begin, std::int64_t end) { f(begin, end - begin, begin / block); });
  }
};

}  // namespace braid::kernels

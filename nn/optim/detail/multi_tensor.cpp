#include <braid/nn/optim/detail/multi_tensor.h>

#include <algorithm>

namespace braid::nn {

std::vector<TensorBlock> cut_into_blocks(std::span<const std::int64_t> sizes) {
  constexpr std::int64_t kBlock = 16384;
  std::vector<TensorBlock> blocks;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (std::int64_t begin = 0; begin < sizes[i]; begin += kBlock)
      blocks.push_back({i, begin, std::min(begin + kBlock, sizes[i])});
  return blocks;
}

void make_writable(Tensor& t) {
  if (!t.unshared() || !t.is_contiguous()) t = t.clone();
}

}  // namespace braid::nn

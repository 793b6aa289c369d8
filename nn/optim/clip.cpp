#include <braid/nn/optim/clip.h>

#include <array>
#include <cmath>
#include <numeric>

#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {
namespace {

/// Eight sums side by side: a single one would wait for each addition.
template <class T>
double sum_of_squares(const T* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto v = static_cast<double>(x[i + lane]);
      sums[static_cast<std::size_t>(lane)] += v * v;
    }
  for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

double global_norm(std::span<const Tensor* const> grads) {
  std::vector<Tensor> contiguous;
  for (const Tensor* grad : grads) contiguous.push_back(grad->contiguous());
  const std::vector<TensorBlock> blocks = cut_into_blocks(grads);
  std::vector<double> sums(blocks.size());
  parallel_for_blocks(blocks, [&](std::size_t i, const TensorBlock& block) {
    const Tensor& x = contiguous[block.tensor];
    sums[i] = dispatch_float("global_norm", x.dtype(), [&](auto zero) {
      return sum_of_squares(x.data<decltype(zero)>() + block.begin, block.end - block.begin);
    });
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

void scale_in_place(std::span<Tensor* const> grads, double factor) {
  for (Tensor* grad : grads) make_writable(*grad);
  parallel_for_blocks(cut_into_blocks(grads), [&](std::size_t, const TensorBlock& block) {
    Tensor& x = *grads[block.tensor];
    dispatch_float("scale_in_place", x.dtype(), [&](auto zero) {
      auto* data = x.mutable_data<decltype(zero)>();
      for (std::int64_t i = block.begin; i < block.end; ++i) data[i] *= static_cast<decltype(zero)>(factor);
    });
  });
}

}  // namespace braid::nn

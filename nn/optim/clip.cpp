#include <braid/nn/optim/clip.h>

#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {

/// Eight sums side by side: a single one would wait for each addition.
static double sum_of_squares(const auto* x, std::int64_t n) {
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

double global_norm(std::span<const Tensor* const> grads) {
  std::vector<Tensor> contiguous;
  for (const Tensor* grad : grads) contiguous.push_back(grad->contiguous());
  std::vector<double> sums(cut_into_blocks(grads).size());
  for_each_block("global_norm", grads, std::identity(), [&]<class T>(T, const TensorBlock& block) {
    sums[block.index] = sum_of_squares(contiguous[block.tensor].data<T>() + block.begin, block.end - block.begin);
  });
  return braid::detail::without_sign_of_nan(std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0)));
}

void scale_in_place(std::span<Tensor* const> grads, double factor) {
  for (Tensor* grad : grads) make_writable(*grad);
  for_each_block("scale_in_place", grads, std::identity(), [&]<class T>(T, const TensorBlock& block) {
    T* data = grads[block.tensor]->mutable_data<T>();
    for (std::int64_t i = block.begin; i < block.end; ++i) data[i] *= static_cast<T>(factor);
  });
}

}  // namespace braid::nn

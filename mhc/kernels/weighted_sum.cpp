#include <braid/mhc/kernels/weighted_sum.h>

#include <algorithm>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/weighted_sum.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

/// Tiles of 256 KiB of elements.
template <class T>
Tiles tiles_of(std::int64_t size) {
  return {size, 256 * 1024 / static_cast<std::int64_t>(sizeof(T))};
}

/// Calls f(begin, end) for the rows of a tile, which stay in the first-level cache from state to state.
void for_rows(std::int64_t first, std::int64_t last, auto f) {
  constexpr std::int64_t kRow = 1024;
  for (std::int64_t begin = first; begin < last; begin += kRow) f(begin, std::min(begin + kRow, last));
}

template <class T>
void sum(const Tensor& x_in, const Tensor& weights_in, const std::vector<Tensor>& states_in, Tensor& y_out) {
  const T *x = In{x_in}, *weights = In{weights_in};
  T* y = Out{y_out};
  std::vector<const T*> states;
  for (const Tensor& state : states_in) states.push_back(In{state});
  tiles_of<T>(x_in.numel()).for_each([=, &states](std::int64_t first, std::int64_t last) HWY_ATTR {
    for_rows(first, last, [=, &states](std::int64_t begin, std::int64_t end) HWY_ATTR {
      std::copy(x + begin, x + end, y + begin);
      for (std::size_t k = 0; k < states.size(); ++k)
        mix<true>(1, 1, end - begin, {weights + k, 0, 0}, states[k] + begin, {}, y + begin);
    });
  });
}

template <class T>
void vjp(const Tensor& weights_in, const std::vector<Tensor>& states_in, std::vector<Tensor>& gradients) {
  const T *weights = In{weights_in}, *all_dy = In{gradients[0]};
  T* const dweights = Out{gradients[1]};
  std::vector<const T*> states;
  std::vector<T*> dstates;
  for (std::size_t k = 0; k < states_in.size(); ++k) {
    states.push_back(In{states_in[k]});
    dstates.push_back(Out{gradients[2 + k]});
  }
  const auto vjp_tile = [&](T* sums, std::int64_t first, std::int64_t last) HWY_ATTR {
    for_rows(first, last, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
      const T* dy = all_dy + begin;
      for (std::size_t k = 0; k < states.size(); ++k) {
        if (dweights != nullptr) inner_products<true>(1, 1, end - begin, dy, states[k] + begin, sums + k);
        if (dstates[k] != nullptr) mix(1, 1, end - begin, {weights + k, 0, 0}, dy, {}, dstates[k] + begin);
      }
    });
  };
  sum_over_tiles<T>(tiles_of<T>(gradients[0].numel()), {{dweights, weights_in.numel()}}, vjp_tile);
}

template <class T>
constexpr WeightedSumKernels<T> kTable = {.sum = sum<T>, .vjp = vjp<T>};

braid::kernels::Tables<WeightedSumKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<WeightedSumKernels> weighted_sum_kernels())

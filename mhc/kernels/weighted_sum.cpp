#include <braid/mhc/kernels/weighted_sum.h>

#include <algorithm>

#include <braid/mhc/kernels/tiles.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/weighted_sum.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
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
template <class F>
void for_rows(std::int64_t first, std::int64_t last, F f) {
  constexpr std::int64_t kRow = 1024;
  for (std::int64_t begin = first; begin < last; begin += kRow) f(begin, std::min(begin + kRow, last));
}

template <class T>
void sum_tile(const WeightedSum<T>& c, std::int64_t first, std::int64_t last) {
  for_rows(first, last, [&](std::int64_t begin, std::int64_t end) {
    std::copy(c.x + begin, c.x + end, c.y + begin);
    for (std::size_t k = 0; k < c.states.size(); ++k)
      mix<true>(1, 1, end - begin, {c.weights + k, 0, 0}, c.states[k] + begin, {}, c.y + begin);
  });
}

/// Adds to dweights.
template <class T>
void vjp_tile(const WeightedSumVjp<T>& c, T* dweights, std::int64_t first, std::int64_t last) {
  for_rows(first, last, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t k = 0; k < c.states.size(); ++k) {
      const T* dy = c.dy + begin;
      if (c.dweights != nullptr) inner_products<true>(1, 1, end - begin, dy, c.states[k] + begin, dweights + k, 1);
      if (c.dstates[k] != nullptr) mix(1, 1, end - begin, {c.weights + k, 0, 0}, dy, {}, c.dstates[k] + begin);
    }
  });
}

template <class T>
void sum(const WeightedSum<T>& c) {
  tiles_of<T>(c.size).for_each([&](std::int64_t first, std::int64_t last) { sum_tile(c, first, last); });
}

template <class T>
void vjp(const WeightedSumVjp<T>& c) {
  const auto count = static_cast<std::int64_t>(c.states.size());
  sum_over_tiles<T>(tiles_of<T>(c.size), {{c.dweights, count}},
                    [&](T* dweights, std::int64_t first, std::int64_t last) { vjp_tile(c, dweights, first, last); });
}

template <class T>
constexpr WeightedSumKernels<T> kTable = {.sum = sum<T>, .vjp = vjp<T>};

braid::kernels::Tables<WeightedSumKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<WeightedSumKernels> weighted_sum_kernels())

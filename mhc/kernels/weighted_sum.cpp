#include <braid/mhc/kernels/weighted_sum.h>

#include <algorithm>

#include <braid/mhc/kernels/tiles.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/weighted_sum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {
namespace {

using kernels::WeightedSum, kernels::WeightedSumVjp;

template <class T>
void sum_row(const WeightedSum<T>& c, int64_t begin, int64_t end) {
  std::copy(c.x + begin, c.x + end, c.y + begin);
  for (size_t k = 0; k < c.states.size(); ++k)
    mix<true>(1, 1, end - begin, {c.weights + k, 0, 0}, c.states[k] + begin, {}, c.y + begin);
}

/// Adds to dweights.
template <class T>
void vjp_row(const WeightedSumVjp<T>& c, T* dweights, int64_t begin, int64_t end) {
  for (size_t k = 0; k < c.states.size(); ++k) {
    const T* dy = c.dy + begin;
    if (c.dweights != nullptr) inner_products<true>(1, 1, end - begin, dy, c.states[k] + begin, dweights + k, 1);
    if (c.dstates[k] != nullptr) mix(1, 1, end - begin, {c.weights + k, 0, 0}, dy, {}, c.dstates[k] + begin);
  }
}

void sum_f32(const WeightedSum<float>& c, int64_t begin, int64_t end) { sum_row(c, begin, end); }
void sum_f64(const WeightedSum<double>& c, int64_t begin, int64_t end) { sum_row(c, begin, end); }

void vjp_f32(const WeightedSumVjp<float>& c, float* sums, int64_t begin, int64_t end) { vjp_row(c, sums, begin, end); }
void vjp_f64(const WeightedSumVjp<double>& c, double* sums, int64_t begin, int64_t end) {
  vjp_row(c, sums, begin, end);
}

}  // namespace
}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc {
namespace {

HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);
HWY_EXPORT(vjp_f32);
HWY_EXPORT(vjp_f64);

// Rows of numbers that stay in the first-level cache while the states are gone through.
constexpr std::int64_t kRow = 1024;

template <class T>
kernels::Tiles tiles_of(std::int64_t size) {
  return {(size + kRow - 1) / kRow, kRow * static_cast<std::int64_t>(sizeof(T))};
}

/// Calls f(begin, end) for the rows [first, last).
template <class F>
void for_rows(std::int64_t size, std::int64_t first, std::int64_t last, F f) {
  for (std::int64_t row = first; row < last; ++row) f(row * kRow, std::min(size, (row + 1) * kRow));
}

template <class T, class F>
void sum_by_tiles(const kernels::WeightedSum<T>& c, F sum) {
  tiles_of<T>(c.size).for_each([&](std::int64_t first, std::int64_t last) {
    for_rows(c.size, first, last, [&](std::int64_t begin, std::int64_t end) { sum(c, begin, end); });
  });
}

template <class T, class F>
void vjp_by_tiles(const kernels::WeightedSumVjp<T>& c, F vjp) {
  const kernels::Tiles tiles = tiles_of<T>(c.size);
  const auto count = static_cast<std::int64_t>(c.states.size());
  kernels::TileSums<T> sums(tiles, count);
  tiles.for_each([&](std::int64_t first, std::int64_t last) {
    T* row = sums.row(first);
    for_rows(c.size, first, last, [&](std::int64_t begin, std::int64_t end) { vjp(c, row, begin, end); });
  });
  if (c.dweights != nullptr) sums.add_up(0, count, c.dweights);
}

}  // namespace

namespace kernels {

void weighted_sum(const WeightedSum<float>& c) {
  sum_by_tiles(c, [](const auto&... arguments) { HWY_DYNAMIC_DISPATCH(sum_f32)(arguments...); });
}

void weighted_sum(const WeightedSum<double>& c) {
  sum_by_tiles(c, [](const auto&... arguments) { HWY_DYNAMIC_DISPATCH(sum_f64)(arguments...); });
}

void weighted_sum_vjp(const WeightedSumVjp<float>& c) {
  vjp_by_tiles(c, [](const auto&... arguments) { HWY_DYNAMIC_DISPATCH(vjp_f32)(arguments...); });
}

void weighted_sum_vjp(const WeightedSumVjp<double>& c) {
  vjp_by_tiles(c, [](const auto&... arguments) { HWY_DYNAMIC_DISPATCH(vjp_f64)(arguments...); });
}

}  // namespace kernels
}  // namespace braid::mhc
#endif  // HWY_ONCE

#include <braid/mhc/kernels/group_mix.h>

#include <braid/mhc/kernels/tiles.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/group_mix.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {
namespace {

using kernels::GroupMix, kernels::GroupMixVjp;

template <class T>
void mix_tile(const GroupMix<T>& c, int64_t begin, int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const int64_t width = n * channels;
  for (int64_t t = begin; t < end; ++t) {
    const T* f = c.f + t * width;
    prefetch(f + width, width);
    if (c.x != nullptr) prefetch(c.x + (t + 1) * width, width);
    T* y = c.y + t * width;
    for (int64_t i = 0; i < n; ++i) mix(1, 1, channels, {c.scale + i, 0, 0}, f + i * channels, {}, y + i * channels);
    if (c.x != nullptr) mix<true>(n, n, channels, {c.mixing, n, 1}, c.x + t * width, {}, y);
  }
}

/// sums: dscale [n], dmixing [n, n] of the tile.
template <class T>
void vjp_tile(const GroupMixVjp<T>& c, T* sums, int64_t begin, int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const int64_t width = n * channels;
  for (int64_t t = begin; t < end; ++t) {
    const T *dy = c.dy + t * width, *f = c.f + t * width;
    prefetch(dy + width, width);
    prefetch(f + width, width);
    for (int64_t at = 0, i = 0; i < n; ++i, at += channels) {
      inner_products<true>(1, 1, channels, dy + at, f + at, sums + i, 1);
      mix(1, 1, channels, {c.scale + i, 0, 0}, dy + at, {}, c.df + t * width + at);
    }
    if (c.x == nullptr) continue;
    inner_products<true>(n, n, channels, dy, c.x + t * width, sums + n, n);
    mix(n, n, channels, {c.mixing, 1, n}, dy, {}, c.dx + t * width);
  }
}

void mix_f32(const GroupMix<float>& c, int64_t begin, int64_t end) { mix_tile(c, begin, end); }
void mix_f64(const GroupMix<double>& c, int64_t begin, int64_t end) { mix_tile(c, begin, end); }

void vjp_f32(const GroupMixVjp<float>& c, float* sums, int64_t begin, int64_t end) { vjp_tile(c, sums, begin, end); }
void vjp_f64(const GroupMixVjp<double>& c, double* sums, int64_t begin, int64_t end) { vjp_tile(c, sums, begin, end); }

}  // namespace
}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc {
namespace {

HWY_EXPORT(mix_f32);
HWY_EXPORT(mix_f64);
HWY_EXPORT(vjp_f32);
HWY_EXPORT(vjp_f64);

template <class T, class F>
void vjp_by_tiles(const kernels::GroupMixVjp<T>& c, F tile) {
  const kernels::Tiles tiles = kernels::tiles_of<T>(c.sizes);
  const std::int64_t n = c.sizes.n;
  kernels::TileSums<T> sums(tiles, n * (n + 1));
  tiles.for_each([&](std::int64_t begin, std::int64_t end) { tile(c, sums.row(begin), begin, end); });
  sums.add_up(0, n, c.dscale);
  if (c.x != nullptr) sums.add_up(n, n * n, c.dmixing);
}

}  // namespace

namespace kernels {

void group_mix(const GroupMix<float>& c) {
  tiles_of<float>(c.sizes).for_each([&](auto... range) { HWY_DYNAMIC_DISPATCH(mix_f32)(c, range...); });
}

void group_mix(const GroupMix<double>& c) {
  tiles_of<double>(c.sizes).for_each([&](auto... range) { HWY_DYNAMIC_DISPATCH(mix_f64)(c, range...); });
}

void group_mix_vjp(const GroupMixVjp<float>& c) {
  vjp_by_tiles(c, [](auto... arguments) { HWY_DYNAMIC_DISPATCH(vjp_f32)(arguments...); });
}

void group_mix_vjp(const GroupMixVjp<double>& c) {
  vjp_by_tiles(c, [](auto... arguments) { HWY_DYNAMIC_DISPATCH(vjp_f64)(arguments...); });
}

}  // namespace kernels
}  // namespace braid::mhc
#endif  // HWY_ONCE

#include <braid/mhc/kernels/group_mix.h>

#include <braid/mhc/kernels/tiles.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/group_mix.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void mix_tile(const GroupMix<T>& c, std::int64_t begin, std::int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const std::int64_t width = n * channels;
  for (std::int64_t t = begin; t < end; ++t) {
    const T* f = c.f + t * width;
    prefetch(f + width, width);
    if (c.x != nullptr) prefetch(c.x + (t + 1) * width, width);
    T* y = c.y + t * width;
    for (std::int64_t i = 0; i < n; ++i)
      mix(1, 1, channels, {c.scale + i, 0, 0}, f + i * channels, {}, y + i * channels);
    if (c.x != nullptr) mix<true>(n, n, channels, {c.mixing, n, 1}, c.x + t * width, {}, y);
  }
}

/// sums: dscale [n], dmixing [n, n] of the tile.
template <class T>
void vjp_tile(const GroupMixVjp<T>& c, T* sums, std::int64_t begin, std::int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const std::int64_t width = n * channels;
  for (std::int64_t t = begin; t < end; ++t) {
    const T *dy = c.dy + t * width, *f = c.f + t * width;
    prefetch(dy + width, width);
    prefetch(f + width, width);
    for (std::int64_t at = 0, i = 0; i < n; ++i, at += channels) {
      inner_products<true>(1, 1, channels, dy + at, f + at, sums + i, 1);
      mix(1, 1, channels, {c.scale + i, 0, 0}, dy + at, {}, c.df + t * width + at);
    }
    if (c.x == nullptr) continue;
    inner_products<true>(n, n, channels, dy, c.x + t * width, sums + n, n);
    mix(n, n, channels, {c.mixing, 1, n}, dy, {}, c.dx + t * width);
  }
}

template <class T>
void vjp(const GroupMixVjp<T>& c) {
  const std::int64_t n = c.sizes.n;
  sum_over_tiles<T>(tiles_of<T>(c.sizes), {{c.dscale, n}, {c.dmixing, n * n}},
                    [&](T* sums, std::int64_t begin, std::int64_t end) { vjp_tile(c, sums, begin, end); });
}

template <class T>
constexpr GroupMixKernels<T> kTable = {.mix = for_each_tile<T, mix_tile<T>>, .vjp = vjp<T>};

braid::kernels::Tables<GroupMixKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<GroupMixKernels> group_mix_kernels())

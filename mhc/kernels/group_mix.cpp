#include <braid/mhc/kernels/group_mix.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/group_mix.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void mix_groups(const GroupMix& in, Tensor& out) {
  const StreamSizes s = sizes_of(in.f.shape());
  const T *mixing = In{in.mixing}, *scale = In{in.scale}, *all_x = In{in.x}, *all_f = In{in.f};
  T* const all_y = Out{out};
  tiles_of<T>(s).for_each([=](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t t = begin; t < end; ++t) {
      const T* f = all_f + t * s.width();
      prefetch(f + s.width(), s.width());
      prefetch(at(all_x, (t + 1) * s.width()), s.width());
      T* y = all_y + t * s.width();
      for (std::int64_t i = 0; i < s.n; ++i)
        mix(1, 1, s.channels, {scale + i, 0, 0}, f + i * s.channels, {}, y + i * s.channels);
      if (all_x != nullptr) mix<true>(s.n, s.n, s.channels, {mixing, s.n, 1}, all_x + t * s.width(), {}, y);
    }
  });
}

/// sums: dscale [n], dmixing [n, n] of the tile.
template <class T>
void vjp(const GroupMix& in, const Tensor& cotangent, GroupMix& d) {
  const StreamSizes s = sizes_of(in.f.shape());
  const T *mixing = In{in.mixing}, *scale = In{in.scale}, *x = In{in.x}, *all_f = In{in.f}, *all_dy = In{cotangent};
  T *dx = Out{d.x}, *df = Out{d.f};
  const auto vjp_tile = [=](T* sums, std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t t = begin; t < end; ++t) {
      const T *dy = all_dy + t * s.width(), *f = all_f + t * s.width();
      prefetch(dy + s.width(), s.width());
      prefetch(f + s.width(), s.width());
      for (std::int64_t at = 0, i = 0; i < s.n; ++i, at += s.channels) {
        inner_products<true>(1, 1, s.channels, dy + at, f + at, sums + i);
        mix(1, 1, s.channels, {scale + i, 0, 0}, dy + at, {}, df + t * s.width() + at);
      }
      if (x == nullptr) continue;
      inner_products<true>(s.n, s.n, s.channels, dy, x + t * s.width(), sums + s.n);
      mix(s.n, s.n, s.channels, {mixing, 1, s.n}, dy, {}, dx + t * s.width());
    }
  };
  sum_over_tiles<T>(tiles_of<T>(s), {{Out{d.scale}, s.n}, {Out{d.mixing}, s.n * s.n}}, vjp_tile);
}

template <class T>
constexpr GroupMixKernels<T> kTable = {.mix = mix_groups<T>, .vjp = vjp<T>};

braid::kernels::Tables<GroupMixKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<GroupMixKernels> group_mix_kernels())

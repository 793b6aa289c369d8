#include <braid/mhc/kernels/mhc_layer.h>

#include <vector>

#include <braid/mhc/kernels/tiles.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/mhc_layer.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

/// f = u scale weight
template <class T>
void scale_channels(std::int64_t channels, const T* u, T scale, const T* weight, T* f) {
  for (std::int64_t c = 0; c < channels; ++c) f[c] = u[c] * scale * weight[c];
}

template <class S, class T = Compute<S>>
void forward_tile(const MHCLayer<S>& c, std::int64_t begin, std::int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const std::int64_t width = n * channels;
  const Store where = store_for(c.y, tokens * width, channels);
  std::vector<T> f(static_cast<std::size_t>(channels));
  for (std::int64_t t = begin; t < end; ++t) {
    const S* x = c.x + t * width;
    prefetch(x + width, width);
    mix(1, n, channels, {c.params.h_pre, 0, 1}, x, {}, f.data());
    inverse_rms_of(1, channels, f.data(), c.eps, c.rstd + t);
    scale_channels(channels, f.data(), c.rstd[t], c.params.weight, f.data());
    mix_to(where, n, n, channels, {c.params.h_res, n, 1}, x, Outer<T>{c.params.h_post, f.data()}, c.y + t * width);
  }
  hwy::FlushStream();
}

/// With g = df weight: du = rstd g - u rstd^3 <g, u> / C, which replaces df; adds to dweight.
template <class T>
void norm_vjp(std::int64_t channels, const T* u, T rstd, const T* weight, T* df, T* dweight) {
  T dot = 0;
  for (std::int64_t c = 0; c < channels; ++c) dweight[c] += df[c] * u[c] * rstd;
  for (std::int64_t c = 0; c < channels; ++c) df[c] *= weight[c];
  inner_products(1, 1, channels, df, u, &dot, 1);
  const T pull = rstd * rstd * rstd * dot / static_cast<T>(channels);
  for (std::int64_t c = 0; c < channels; ++c) df[c] = rstd * df[c] - u[c] * pull;
}

/// sums: dh_pre [n], dh_post [n], dh_res [n, n], dweight [C] of the tile.
template <class S, class T = Compute<S>>
void vjp_tile(const MHCLayerVjp<S>& c, T* sums, std::int64_t begin, std::int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const std::int64_t width = n * channels;
  const Store where = store_for(c.dx, tokens * width, channels);
  std::vector<T> u(static_cast<std::size_t>(channels)), f(static_cast<std::size_t>(channels));
  for (std::int64_t t = begin; t < end; ++t) {
    const S *x = c.x + t * width, *dy = c.dy + t * width;
    prefetch(x + width, width);
    prefetch(dy + width, width);
    mix(1, n, channels, {c.params.h_pre, 0, 1}, x, {}, u.data());
    scale_channels(channels, u.data(), c.rstd[t], c.params.weight, f.data());
    inner_products<true>(n, 1, channels, dy, f.data(), sums + n, 1);
    inner_products<true>(n, n, channels, dy, x, sums + 2 * n, n);
    T* du = f.data();
    mix(1, n, channels, {c.params.h_post, 0, 1}, dy, {}, du);
    norm_vjp(channels, u.data(), c.rstd[t], c.params.weight, du, sums + n * (n + 2));
    inner_products<true>(n, 1, channels, x, du, sums, 1);
    mix_to(where, n, n, channels, {c.params.h_res, 1, n}, dy, Outer<T>{c.params.h_pre, du}, c.dx + t * width);
  }
  hwy::FlushStream();
}

template <class T>
void vjp(const MHCLayerVjp<T>& c) {
  const auto [tokens, n, channels] = c.sizes;
  sum_over_tiles<Compute<T>>(
      tiles_of<T>(c.sizes), {{c.dh_pre, n}, {c.dh_post, n}, {c.dh_res, n * n}, {c.dweight, channels}},
      [&](Compute<T>* sums, std::int64_t begin, std::int64_t end) { vjp_tile(c, sums, begin, end); });
}

template <class T>
constexpr MHCLayerKernels<T> kTable = {.forward = for_each_tile<T, forward_tile<T>>, .vjp = vjp<T>};

braid::kernels::Tables<MHCLayerKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<MHCLayerKernels> mhc_layer_kernels())

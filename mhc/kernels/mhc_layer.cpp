#include <braid/mhc/kernels/mhc_layer.h>

#include <vector>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/mhc_layer.cpp"
#include <hwy/foreach_target.h>

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
void forward(const MHCLayer& in, double eps, Tensor& out, Tensor& rstds) {
  const StreamSizes s = sizes_of(in.x.shape());
  const std::int64_t n = s.n, channels = s.channels, width = s.width();
  const T *h_pre = In{in.h_pre}, *h_post = In{in.h_post}, *h_res = In{in.h_res}, *weight = In{in.weight};
  const S* all_x = In{in.x};
  S* y = Out{out};
  T* rstd = Out{rstds};
  tiles_of<S>(s).for_each([=](std::int64_t begin, std::int64_t end) HWY_ATTR {
    const Store where = store_for(y, s.tokens * width, channels);
    std::vector<T> f(static_cast<std::size_t>(channels));
    for (std::int64_t t = begin; t < end; ++t) {
      const S* x = all_x + t * width;
      prefetch(x + width, width);
      mix(1, n, channels, {h_pre, 0, 1}, x, {}, f.data());
      inverse_rms_of(1, channels, f.data(), eps, rstd + t);
      scale_channels(channels, f.data(), rstd[t], weight, f.data());
      mix_to(where, kFromZero, n, n, channels, {h_res, n, 1}, x, Outer<T>{h_post, f.data()}, y + t * width);
    }
    hwy::FlushStream();
  });
}

/// With g = df weight: du = rstd g - u rstd^3 <g, u> / C, which replaces df; adds to dweight.
template <class T>
void norm_vjp(std::int64_t channels, const T* u, T rstd, const T* weight, T* df, T* dweight) {
  T dot = 0;
  for (std::int64_t c = 0; c < channels; ++c) dweight[c] += df[c] * u[c] * rstd;
  for (std::int64_t c = 0; c < channels; ++c) df[c] *= weight[c];
  inner_products(1, 1, channels, df, u, &dot);
  const T pull = rstd * rstd * rstd * dot / static_cast<T>(channels);
  for (std::int64_t c = 0; c < channels; ++c) df[c] = rstd * df[c] - u[c] * pull;
}

/// sums: dh_pre [n], dh_post [n], dh_res [n, n], dweight [C] of the tile.
template <class S, class T = Compute<S>>
void vjp(const MHCLayer& in, const Tensor& rstds, const Tensor& cotangent, MHCLayer& d) {
  const StreamSizes s = sizes_of(in.x.shape());
  const std::int64_t n = s.n, channels = s.channels, width = s.width();
  const T *h_pre = In{in.h_pre}, *h_post = In{in.h_post}, *h_res = In{in.h_res}, *weight = In{in.weight};
  const T* rstd = In{rstds};
  const S *all_x = In{in.x}, *all_dy = In{cotangent};
  S* dx = Out{d.x};
  const auto vjp_tile = [=](T* sums, std::int64_t begin, std::int64_t end) HWY_ATTR {
    const Store where = store_for(dx, s.tokens * width, channels);
    std::vector<T> u(static_cast<std::size_t>(channels)), f(static_cast<std::size_t>(channels));
    for (std::int64_t t = begin; t < end; ++t) {
      const S *x = all_x + t * width, *dy = all_dy + t * width;
      prefetch(x + width, width);
      prefetch(dy + width, width);
      mix(1, n, channels, {h_pre, 0, 1}, x, {}, u.data());
      scale_channels(channels, u.data(), rstd[t], weight, f.data());
      inner_products<true>(n, 1, channels, dy, f.data(), sums + n);
      inner_products<true>(n, n, channels, dy, x, sums + 2 * n);
      T* du = f.data();
      mix(1, n, channels, {h_post, 0, 1}, dy, {}, du);
      norm_vjp(channels, u.data(), rstd[t], weight, du, sums + n * (n + 2));
      inner_products<true>(n, 1, channels, x, du, sums);
      mix_to(where, kFromZero, n, n, channels, {h_res, 1, n}, dy, Outer<T>{h_pre, du}, dx + t * width);
    }
    hwy::FlushStream();
  };
  sum_over_tiles<T>(tiles_of<S>(s),
                    {{Out{d.h_pre}, n}, {Out{d.h_post}, n}, {Out{d.h_res}, n * n}, {Out{d.weight}, channels}},
                    vjp_tile);
}

template <class T>
constexpr MHCLayerKernels<T> kTable = {.forward = forward<T>, .vjp = vjp<T>};

braid::kernels::Tables<MHCLayerKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<MHCLayerKernels> mhc_layer_kernels())

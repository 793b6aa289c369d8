#include <braid/mhc/kernels/hyper_read.h>

#include <algorithm>
#include <vector>

#include <braid/mhc/kernels/tiles.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/hyper_read.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

using braid::kernels::In, braid::kernels::Out, braid::kernels::HWY_NAMESPACE::transform;

std::int64_t maps_of(const StreamSizes& s) { return s.n * (s.n + 2); }

/// Which alpha an entry of the maps has.
std::int64_t group(const StreamSizes& s, std::int64_t entry) { return entry < s.n ? 0 : entry < 2 * s.n ? 1 : 2; }

constexpr auto kTanh = [](auto d, auto v) HWY_ATTR { return braid::kernels::HWY_NAMESPACE::tanh(d, v); };

template <class S, class T = Compute<S>>
void read(const HyperRead& in, double eps, HyperSaved& saved, Tensor& result) {
  const StreamSizes sizes = sizes_of(in.x.shape());
  const std::int64_t n = sizes.n, channels = sizes.channels, width = sizes.width(), m = maps_of(sizes);
  const T *theta = In{in.theta}, *alpha = In{in.alpha}, *bias = In{in.bias};
  const S* all_x = In{in.x};
  T *all_s = Out{saved.s}, *all_rstd = Out{saved.rstd}, *maps = Out{saved.maps};
  S* u = Out{result};
  tiles_of<S>(sizes).for_each([=](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t t = begin; t < end; ++t) {
      const S* x = all_x + t * width;
      T *s = all_s + t * m, *rstd = all_rstd + t * n;
      prefetch(x + width, width);
      inner_products(n + 2, n, channels, theta, x, s, n);
      inverse_rms_of(n, channels, x, eps, rstd);
      for (std::int64_t e = 0; e < m; ++e) s[e] *= rstd[e % n];
    }
    transform(kTanh, (end - begin) * m, maps + begin * m, all_s + begin * m);
    for (std::int64_t t = begin; t < end; ++t) {
      T* h = maps + t * m;
      for (std::int64_t e = 0; e < m; ++e) h[e] = alpha[group(sizes, e)] * h[e] + bias[e];
      mix(1, n, channels, {h, 0, 1}, all_x + t * width, {}, u + t * channels);
    }
  });
}

/// What the vjp reads, and dx.
template <class S, class T = Compute<S>>
struct VjpCall {
  StreamSizes sizes;
  const T *theta, *alpha, *s, *rstd, *maps, *dh_post;
  const S *x, *du, *dy;
  S* dx;
};

/// dh [m] of one token: <du, x_i> | dh_post | <dy_i, x_j>.
template <class S, class T = Compute<S>>
void map_gradients(const VjpCall<S>& c, std::int64_t t, T* dh) {
  const auto [tokens, n, channels] = c.sizes;
  const S* x = c.x + t * n * channels;
  std::fill_n(dh, maps_of(c.sizes), T{0});
  if (c.du != nullptr) inner_products(n, 1, channels, x, c.du + t * channels, dh, 1);
  if (c.dh_post != nullptr) std::copy_n(c.dh_post + t * n, n, dh + n);
  if (c.dy != nullptr) inner_products(n, n, channels, c.dy + t * n * channels, x, dh + 2 * n, n);
}

/// dh to ds = alpha dh (1 - tanh(s)^2), in place; adds to dalpha and dbias.
template <class T>
void tanh_vjp(const StreamSizes& sizes, const T* alpha, const T* tanh_s, T* dh, T* dalpha, T* dbias) {
  for (std::int64_t e = 0; e < maps_of(sizes); ++e) {
    const std::int64_t a = group(sizes, e);
    dbias[e] += dh[e];
    dalpha[a] += dh[e] * tanh_s[e];
    dh[e] *= alpha[a] * (1 - tanh_s[e] * tanh_s[e]);
  }
}

/// dx_j = pull_j x_j + h_pre_j du + sum_k a_kj theta_k + sum_i h_res_ij dy_i of one token. `scratch` [n, C] takes the
/// sum without the terms of du and dy.
template <class S, class T = Compute<S>>
void stream_cotangent(const VjpCall<S>& c, std::int64_t t, const T* pull, const T* a, T* scratch) {
  const std::int64_t tokens = c.sizes.tokens, n = c.sizes.n, channels = c.sizes.channels, width = n * channels;
  const S* x = c.x + t * width;
  const auto pulled = [=](auto d, std::int64_t row, std::int64_t channel) HWY_ATTR {  // pull_j x_j
    return hn::Mul(hn::Set(d, pull[row]), load(d, x + row * channels + channel));
  };
  mix_from<Store::cached>(pulled, n, n + 2, channels, {a, 1, n}, c.theta, {}, scratch);
  const T* h = c.maps + t * maps_of(c.sizes);
  const Outer<T, S> read{h, c.du == nullptr ? nullptr : c.du + t * channels};
  const S* dy = c.dy == nullptr ? nullptr : c.dy + t * width;
  mix_to(store_for(c.dx, tokens * width, channels), from_rows(scratch, channels), n, dy == nullptr ? 0 : n, channels,
         {h + 2 * n, 1, n}, dy, read, c.dx + t * width);
}

/// With a_kj = ds_kj rstd_j: dtheta_k += sum_j a_kj x_j, and dx as above with pull_j = -rstd_j^2 / C sum_k ds_kj s_kj.
/// ds [m] becomes a; `pull` [n] and `scratch` [n, C] are overwritten.
template <class S, class T = Compute<S>>
void token_vjp(const VjpCall<S>& c, std::int64_t t, T* ds, T* pull, T* scratch, T* dtheta) {
  const auto [tokens, n, channels] = c.sizes;
  const std::int64_t m = maps_of(c.sizes);
  const T *rstd = c.rstd + t * n, *s = c.s + t * m;
  std::fill_n(pull, n, T{0});
  for (std::int64_t e = 0; e < m; ++e) {
    pull[e % n] -= ds[e] * s[e];
    ds[e] *= rstd[e % n];
  }
  for (std::int64_t j = 0; j < n; ++j) pull[j] *= rstd[j] * rstd[j] / static_cast<T>(channels);
  mix<true>(n + 2, n, channels, {ds, n, 1}, c.x + t * n * channels, {}, dtheta);
  stream_cotangent(c, t, pull, ds, scratch);
}

/// sums: dtheta [2 + n, C], dalpha [3], dbias [m] of the tile.
template <class S, class T = Compute<S>>
void vjp_tile(const VjpCall<S>& c, T* sums, std::int64_t begin, std::int64_t end) {
  const std::int64_t m = maps_of(c.sizes), width = c.sizes.width(), thetas = width + 2 * c.sizes.channels;
  std::vector<T> tanh_s(static_cast<std::size_t>((end - begin) * m)), ds(static_cast<std::size_t>(m)),
      pull(static_cast<std::size_t>(c.sizes.n)), scratch(static_cast<std::size_t>(width));
  transform(kTanh, (end - begin) * m, tanh_s.data(), c.s + begin * m);
  for (std::int64_t t = begin; t < end; ++t) {
    prefetch(c.x + (t + 1) * width, width);
    if (c.dy != nullptr) prefetch(c.dy + (t + 1) * width, width);
    map_gradients(c, t, ds.data());
    tanh_vjp(c.sizes, c.alpha, tanh_s.data() + (t - begin) * m, ds.data(), sums + thetas, sums + thetas + 3);
    token_vjp(c, t, ds.data(), pull.data(), scratch.data(), sums);
  }
  hwy::FlushStream();
}

template <class S, class T = Compute<S>>
void vjp(const HyperRead& in, const HyperSaved& saved, const Tensor& du, const Tensor& dy, const Tensor& dh_post,
         HyperRead& d) {
  const VjpCall<S> c{.sizes = sizes_of(in.x.shape()),
                     .theta = In{in.theta},
                     .alpha = In{in.alpha},
                     .s = In{saved.s},
                     .rstd = In{saved.rstd},
                     .maps = In{saved.maps},
                     .dh_post = In{dh_post},
                     .x = In{in.x},
                     .du = In{du},
                     .dy = In{dy},
                     .dx = Out{d.x}};
  const std::int64_t m = maps_of(c.sizes), thetas = (c.sizes.n + 2) * c.sizes.channels;
  sum_over_tiles<T>(tiles_of<S>(c.sizes), {{Out{d.theta}, thetas}, {Out{d.alpha}, 3}, {Out{d.bias}, m}},
                    [&](T* sums, std::int64_t begin, std::int64_t end) { vjp_tile(c, sums, begin, end); });
}

template <class T>
constexpr HyperReadKernels<T> kTable = {.read = read<T>, .vjp = vjp<T>};

braid::kernels::Tables<HyperReadKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<HyperReadKernels> hyper_read_kernels())

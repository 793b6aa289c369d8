#include <braid/mhc/kernels/hyper_read.h>

#include <algorithm>
#include <vector>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/hyper_read.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

using braid::kernels::HWY_NAMESPACE::transform;

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
      inner_products(n + 2, n, channels, theta, x, s);
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

/// With ds and a_kj = ds_kj rstd_j: dtheta_k += sum_j a_kj x_j, and
/// dx_j = pull_j x_j + h_pre_j du + sum_k a_kj theta_k + sum_i h_res_ij dy_i, pull_j = -rstd_j^2 / C sum_k ds_kj s_kj.
/// sums: dtheta [2 + n, C], dalpha [3], dbias [m] of the tile.
template <class S, class T = Compute<S>>
void vjp(const HyperRead& in, const HyperSaved& saved, const Tensor& du_in, const Tensor& dy_in,
         const Tensor& dh_post_in, HyperRead& d) {
  const StreamSizes sizes = sizes_of(in.x.shape());
  const std::int64_t n = sizes.n, channels = sizes.channels, width = sizes.width(), m = maps_of(sizes);
  const std::int64_t thetas = width + 2 * channels;
  const T *theta = In{in.theta}, *alpha = In{in.alpha}, *all_s = In{saved.s}, *all_rstd = In{saved.rstd};
  const T *maps = In{saved.maps}, *dh_post = In{dh_post_in};
  const S *all_x = In{in.x}, *all_du = In{du_in}, *all_dy = In{dy_in};
  S* dx = Out{d.x};
  const auto vjp_tile = [=](T* sums, std::int64_t begin, std::int64_t end) HWY_ATTR {
    const Store where = store_for(dx, sizes.tokens * width, channels);
    std::vector<T> tanh_s(static_cast<std::size_t>((end - begin) * m)), map_cotangents(static_cast<std::size_t>(m)),
        pulls(static_cast<std::size_t>(n)), streams(static_cast<std::size_t>(width));
    T *ds = map_cotangents.data(), *pull = pulls.data(), *scratch = streams.data();
    transform(kTanh, (end - begin) * m, tanh_s.data(), all_s + begin * m);
    for (std::int64_t t = begin; t < end; ++t) {
      const S *x = all_x + t * width, *du = at(all_du, t * channels), *dy = at(all_dy, t * width);
      const T *s = all_s + t * m, *rstd = all_rstd + t * n, *h = maps + t * m;
      prefetch(x + width, width);
      prefetch(at(dy, width), width);
      std::fill_n(ds, m, T{0});  // dh: <du, x_i> | dh_post | <dy_i, x_j>
      if (du != nullptr) inner_products(n, 1, channels, x, du, ds);
      if (dh_post != nullptr) std::copy_n(dh_post + t * n, n, ds + n);
      if (dy != nullptr) inner_products(n, n, channels, dy, x, ds + 2 * n);
      tanh_vjp(sizes, alpha, tanh_s.data() + (t - begin) * m, ds, sums + thetas, sums + thetas + 3);
      std::fill_n(pull, n, T{0});
      for (std::int64_t e = 0; e < m; ++e) {
        pull[e % n] -= ds[e] * s[e];
        ds[e] *= rstd[e % n];  // a
      }
      for (std::int64_t j = 0; j < n; ++j) pull[j] *= rstd[j] * rstd[j] / static_cast<T>(channels);
      mix<true>(n + 2, n, channels, {ds, n, 1}, x, {}, sums);
      const auto pulled = [=](auto v, std::int64_t row, std::int64_t channel) HWY_ATTR {  // pull_j x_j
        return hn::Mul(hn::Set(v, pull[row]), load(v, x + row * channels + channel));
      };
      mix_from<Store::cached>(pulled, n, n + 2, channels, {ds, 1, n}, theta, {}, scratch);
      mix_to(where, from_rows(scratch, channels), n, dy == nullptr ? 0 : n, channels, {h + 2 * n, 1, n}, dy,
             Outer<T, S>{h, du}, dx + t * width);
    }
    hwy::FlushStream();
  };
  sum_over_tiles<T>(tiles_of<S>(sizes), {{Out{d.theta}, thetas}, {Out{d.alpha}, 3}, {Out{d.bias}, m}}, vjp_tile);
}

template <class T>
constexpr HyperReadKernels<T> kTable = {.read = read<T>, .vjp = vjp<T>};

braid::kernels::Tables<HyperReadKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<HyperReadKernels> hyper_read_kernels())

#include <braid/mhc/kernels/mhc_tiles.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <braid/core/gemm.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/mhc_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/maps-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {

using kernels::MhcCotangents, kernels::MhcGradients, kernels::MhcParams, kernels::MhcSaved, kernels::MhcSizes,
    kernels::MhcTiles, kernels::MhcWrite;

/// The matrices of one token's maps.
template <class T>
struct TokenMaps {
  const T *pre, *post;    // [n]
  Coefficients<T> res;    // [n, n]
  Coefficients<T> res_t;  // its transpose

  TokenMaps(const T* maps, int64_t n) : pre(maps), post(maps + n), res{maps + 2 * n, n, 1}, res_t{maps + 2 * n, 1, n} {}
};

template <class T>
void write_tile(const MhcSizes& s, const MhcWrite<T>& w, T* y, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const TokenMaps<T> maps(w.maps + t * s.maps(), s.n);
    const Outer<T> layer{maps.post, w.f + t * s.channels};
    mix(s.n, s.n, s.channels, maps.res, w.x + t * s.width(), layer, y + t * s.width());
  }
}

template <class T>
void write_vjp_tile(const MhcSizes& s, const MhcWrite<T>& w, const T* dy, T* dmaps, T* df, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const TokenMaps<T> maps(w.maps + t * s.maps(), s.n);
    const T *g = dy + t * s.width(), *f = w.f + t * s.channels;
    T* dm = dmaps + t * s.maps();
    std::fill_n(dm, s.n, T{0});
    inner_products(s.n, 1, s.channels, g, f, dm + s.n, 1);
    inner_products(s.n, s.n, s.channels, g, w.x + t * s.width(), dm + 2 * s.n, s.n);
    mix(1, s.n, s.channels, {maps.post, 0, 1}, g, {}, df + t * s.channels);
  }
}

template <class T>
T root_mean_square(const T* x, int64_t width, double eps) {
  T squares = 0;
  inner_products(1, 1, width, x, x, &squares, 1);
  return static_cast<T>(std::sqrt(static_cast<double>(squares) / static_cast<double>(width) + eps));
}

template <class T, int kN>
void forward_tile(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, T* x, T* z, T* r, T* maps,
                  T* u, int64_t begin, int64_t end) {
  if (before.x != nullptr) write_tile(s, before, x, begin, end);
  gemm_serial<T>(false, false, end - begin, s.maps(), s.width(), 1, x + begin * s.width(), s.width(), params.phi,
                 s.maps(), 0, z + begin * s.maps(), s.maps());
  for (int64_t t = begin; t < end; ++t) r[t] = root_mean_square(x + t * s.width(), s.width(), s.eps);
  MapLanes<T, kN> lanes(s, params);
  for (int64_t t = begin; t < end; t += lanes.lanes())
    lanes.forward(std::min(lanes.lanes(), end - t), z + t * s.maps(), r + t, maps + t * s.maps());
  for (int64_t t = begin; t < end; ++t)
    mix(1, s.n, s.channels, {maps + t * s.maps(), 0, 1}, x + t * s.width(), {}, u + t * s.channels);
}

/// dmaps of a tile: what the write gave for post and res, and pre: <du, x_i>.
template <class T>
void complete_dmaps(const MhcSizes& s, const MhcSaved<T>& saved, const MhcCotangents<T>& c, T* dmaps, int64_t begin,
                    int64_t end) {
  if (c.dmaps != nullptr)
    std::copy(c.dmaps + begin * s.maps(), c.dmaps + end * s.maps(), dmaps);
  else
    std::fill_n(dmaps, (end - begin) * s.maps(), T{0});
  if (c.du == nullptr) return;
  for (int64_t t = begin; t < end; ++t)
    inner_products(s.n, 1, s.channels, saved.x + t * s.width(), c.du + t * s.channels, dmaps + (t - begin) * s.maps(),
                   1);
}

/// One tile: dz (kept for dphi), dx and the gradients of the write before; sums [3 + m] are dalpha and dbias.
template <class T, int kN>
void backward_tile(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, const MhcSaved<T>& saved,
                   const MhcCotangents<T>& c, const MhcGradients<T>& grads, T* dz, T* sums, int64_t begin,
                   int64_t end) {
  const int64_t count = end - begin, m = s.maps(), width = s.width();
  std::vector<T> dmaps(static_cast<size_t>(count * m)), scale(static_cast<size_t>(count));
  complete_dmaps(s, saved, c, dmaps.data(), begin, end);
  MapLanes<T, kN> lanes(s, params);
  for (int64_t t = begin; t < end; t += lanes.lanes())
    lanes.backward(std::min(lanes.lanes(), end - t), saved.z + t * m, saved.r + t, dmaps.data() + (t - begin) * m,
                   dz + t * m, scale.data() + (t - begin), sums, sums + 3);
  // dx = dz phi^T - scale x + H_pre^T du + H_res^T dy
  gemm_serial<T>(false, true, count, width, m, 1, dz + begin * m, m, params.phi, m, 0, grads.dx + begin * width, width);
  for (int64_t t = begin; t < end; ++t) {
    const TokenMaps<T> maps(saved.maps + t * m, s.n);
    T* dx = grads.dx + t * width;
    const T minus_scale = -scale[static_cast<size_t>(t - begin)];
    mix<true>(1, 1, width, {&minus_scale, 0, 0}, saved.x + t * width, {}, dx);
    const Outer<T> read{maps.pre, c.du == nullptr ? nullptr : c.du + t * s.channels};
    mix<true>(s.n, c.dy == nullptr ? 0 : s.n, s.channels, maps.res_t, c.dy == nullptr ? nullptr : c.dy + t * width,
              read, dx);
  }
  if (before.x != nullptr) write_vjp_tile(s, before, grads.dx, grads.dmaps_before, grads.df, begin, end);
}

/// Loops are unrolled for n = 4, the paper's.
template <class T>
MhcTiles<T> tiles_for_all_n() {
  return {
      &write_tile<T>,
      &write_vjp_tile<T>,
      [](const MhcSizes& s, auto... args) { (s.n == 4 ? &forward_tile<T, 4> : &forward_tile<T, 0>)(s, args...); },
      [](const MhcSizes& s, auto... args) { (s.n == 4 ? &backward_tile<T, 4> : &backward_tile<T, 0>)(s, args...); },
  };
}

MhcTiles<float> tiles_f32() { return tiles_for_all_n<float>(); }
MhcTiles<double> tiles_f64() { return tiles_for_all_n<double>(); }

}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc {

HWY_EXPORT(tiles_f32);
HWY_EXPORT(tiles_f64);

namespace kernels {

template <>
MhcTiles<float> mhc_tiles() {
  return HWY_DYNAMIC_DISPATCH(tiles_f32)();
}

template <>
MhcTiles<double> mhc_tiles() {
  return HWY_DYNAMIC_DISPATCH(tiles_f64)();
}

}  // namespace kernels
}  // namespace braid::mhc
#endif  // HWY_ONCE

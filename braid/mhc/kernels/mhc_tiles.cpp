#include <braid/mhc/kernels/mhc_tiles.h>

#include <algorithm>
#include <cmath>

#include <hwy/cache_control.h>

#include <braid/core/gemm.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/mhc_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/maps-inl.h>
#include <braid/mhc/kernels/mix-inl.h>
#include <braid/mhc/kernels/thin-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {

using kernels::MhcCotangents, kernels::MhcGradients, kernels::MhcParams, kernels::MhcSaved, kernels::MhcSizes,
    kernels::MhcTiles, kernels::MhcWorkspace, kernels::MhcWrite;

/// The matrices of one token's maps.
template <class T>
struct TokenMaps {
  const T *pre, *post;  // [n]
  Coefficients<T> res;  // [n, n]

  TokenMaps(const T* maps, int64_t n) : pre(maps), post(maps + n), res{maps + 2 * n, n, 1} {}
};

/// Asks for the streams of the next token while this one is worked on: their rows are too short for the processor to
/// guess what comes.
template <class T>
void prefetch_next(const MhcSizes& s, const T* x) {
  for (int64_t i = 0; i < s.width(); i += 64 / static_cast<int64_t>(sizeof(T))) hwy::Prefetch(x + s.width() + i);
}

template <class T>
void write_tile(const MhcSizes& s, const MhcWrite<T>& w, T* y, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const TokenMaps<T> maps(w.maps + t * s.maps(), s.n);
    const Outer<T> layer{maps.post, w.f + t * s.channels};
    prefetch_next(s, w.x + t * s.width());
    mix(s.n, s.n, s.channels, maps.res, w.x + t * s.width(), layer, y + t * s.width());
  }
}

template <class T>
void write_vjp_tile(const MhcSizes& s, const MhcWrite<T>& w, const T* dy, T* dpost, T* df, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    const TokenMaps<T> maps(w.maps + t * s.maps(), s.n);
    const T* g = dy + t * s.width();
    inner_products(s.n, 1, s.channels, g, w.f + t * s.channels, dpost + t * s.n, 1);
    mix(1, s.n, s.channels, {maps.post, 0, 1}, g, {}, df + t * s.channels);
  }
}

template <class T>
T root_mean_square(const T* x, int64_t width, double eps) {
  T squares = 0;
  inner_products(1, 1, width, x, x, &squares, 1);
  return static_cast<T>(std::sqrt(static_cast<double>(squares) / static_cast<double>(width) + eps));
}

/// c [rows, m] = a b or, to accumulate, c += a b for the m = n (n + 2) columns of the maps.
template <int kN, class T>
void multiply_maps(int64_t rows, int64_t depth, int64_t m, Factor<T> a, const T* b, bool accumulate, T* c) {
  if constexpr (kN != 0) return multiply_thin<kN*(kN + 2)>(rows, depth, a, b, accumulate, c);
  const bool transposed = a.depth_step != 1;  // with one column both steps are 1, and rows lie behind each other
  gemm_serial<T>(transposed, false, rows, m, depth, 1, a.data, transposed ? a.depth_step : std::max(a.row_step, depth),
                 b, m, accumulate ? 1 : 0, c, m);
}

template <class T, int kN>
void forward_tile(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, T* x, T* z, T* r, T* maps,
                  T* u, int64_t begin, int64_t end) {
  if (before.x != nullptr) write_tile(s, before, x, begin, end);
  multiply_maps<kN, T>(end - begin, s.width(), s.maps(), {x + begin * s.width(), s.width(), 1}, params.phi, false,
                       z + begin * s.maps());
  for (int64_t t = begin; t < end; ++t) r[t] = root_mean_square(x + t * s.width(), s.width(), s.eps);
  MapLanes<T, kN> lanes(s, params);
  for (int64_t t = begin; t < end; t += lanes.lanes())
    lanes.forward(std::min(lanes.lanes(), end - t), z + t * s.maps(), r + t, maps + t * s.maps());
  for (int64_t t = begin; t < end; ++t)
    mix(1, s.n, s.channels, {maps + t * s.maps(), 0, 1}, x + t * s.width(), {}, u + t * s.channels);
}

/// The terms of one token's dx; null stands for zero.
template <class T>
struct StreamCotangent {
  const T* products;  // [n, C], dz phi^T
  T scale;
  const T *x, *maps;  // [n, C], [m]
  const T* du;        // [C]
  const T* dy;        // [n, C]
};

/// dx = dz phi^T - scale x + H_pre^T du + H_res^T dy. dx may be dy when n <= 4: dy is then read before dx is written.
template <class T>
void stream_cotangent(const MhcSizes& s, const StreamCotangent<T>& terms, T* dx) {
  const TokenMaps<T> maps(terms.maps, s.n);
  over_channels<T>(s.channels, [&](auto d, int64_t begin, int64_t end) {
    using V = hn::Vec<decltype(d)>;
    const auto at = [&](const T* rows, int64_t i, int64_t c) { return hn::LoadU(d, rows + i * s.channels + c); };
    const V minus_scale = hn::Set(d, -terms.scale);
    in_fours(s.n, [&](auto group, int64_t i) {
      constexpr int kRows = decltype(group)::value;
      for (int64_t c = begin; c < end; c += static_cast<int64_t>(hn::Lanes(d))) {
        V sum[kRows];
        for (int r = 0; r < kRows; ++r)
          sum[r] = hn::MulAdd(minus_scale, at(terms.x, i + r, c), at(terms.products, i + r, c));
        if (terms.du != nullptr) {
          const V du = at(terms.du, 0, c);
          for (int r = 0; r < kRows; ++r) sum[r] = hn::MulAdd(hn::Set(d, maps.pre[i + r]), du, sum[r]);
        }
        for (int64_t j = 0; terms.dy != nullptr && j < s.n; ++j) {
          const V dy = at(terms.dy, j, c);
          for (int r = 0; r < kRows; ++r) sum[r] = hn::MulAdd(hn::Set(d, maps.res.at(j, i + r)), dy, sum[r]);
        }
        for (int r = 0; r < kRows; ++r) hn::StoreU(sum[r], d, dx + (i + r) * s.channels + c);
      }
    });
  });
}

/// dmaps [tile, m]: pre <du, x_i>, post as given, res <dy_i, x_j>.
template <class T>
void collect_dmaps(const MhcSizes& s, const MhcSaved<T>& saved, const MhcCotangents<T>& c, T* dmaps, int64_t begin,
                   int64_t end) {
  std::fill_n(dmaps, (end - begin) * s.maps(), T{0});
  for (int64_t t = begin; t < end; ++t, dmaps += s.maps()) {
    const T* x = saved.x + t * s.width();
    prefetch_next(s, x);
    if (c.dy != nullptr) prefetch_next(s, c.dy + t * s.width());
    if (c.du != nullptr) inner_products(s.n, 1, s.channels, x, c.du + t * s.channels, dmaps, 1);
    if (c.dpost != nullptr) std::copy_n(c.dpost + t * s.n, s.n, dmaps + s.n);
    if (c.dy != nullptr) inner_products(s.n, s.n, s.channels, c.dy + t * s.width(), x, dmaps + 2 * s.n, s.n);
  }
}

/// One tile: dx, the gradients of the write before, and what it adds to those of the parameters.
template <class T, int kN>
void backward_tile(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, const MhcSaved<T>& saved,
                   const MhcCotangents<T>& c, const MhcGradients<T>& grads, const MhcWorkspace<T>& w, int64_t begin,
                   int64_t end) {
  const int64_t count = end - begin, m = s.maps(), width = s.width();
  collect_dmaps(s, saved, c, w.dmaps, begin, end);
  MapLanes<T, kN> lanes(s, params);
  for (int64_t i = 0; i < count; i += lanes.lanes())
    lanes.backward(std::min(lanes.lanes(), count - i), saved.z + (begin + i) * m, saved.r + begin + i, w.dmaps + i * m,
                   w.dz + i * m, w.scale + i, w.dalpha, w.dbias);
  multiply_maps<kN, T>(width, count, m, {saved.x + begin * width, 1, width}, w.dz, true, w.dphi);
  gemm_serial<T>(false, true, count, width, m, 1, w.dz, m, params.phi, m, 0, w.products, width);
  for (int64_t t = begin; t < end; ++t) {
    const StreamCotangent<T> terms{w.products + (t - begin) * width,
                                   w.scale[t - begin],
                                   saved.x + t * width,
                                   saved.maps + t * m,
                                   c.du == nullptr ? nullptr : c.du + t * s.channels,
                                   c.dy == nullptr ? nullptr : c.dy + t * width};
    stream_cotangent(s, terms, grads.dx + t * width);
  }
  if (before.f != nullptr) write_vjp_tile(s, before, grads.dx, grads.dpost_before, grads.df, begin, end);
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

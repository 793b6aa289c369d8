#include <braid/mhc/kernels/mhc_read_tiles.h>

#include <algorithm>
#include <cmath>

#include <braid/core/gemm.h>
#include <braid/mhc/kernels/tiles.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/mhc_read_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/channels-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/maps-inl.h>
#include <braid/mhc/kernels/mix-inl.h>
#include <braid/mhc/kernels/prefetch-inl.h>
#include <braid/mhc/kernels/product_vjp-inl.h>
#include <braid/mhc/kernels/thin_product-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {

using kernels::MhcBackward, kernels::MhcCotangents, kernels::MhcGradients, kernels::MhcParams, kernels::MhcRange,
    kernels::MhcResults, kernels::MhcParamSums, kernels::MhcSaved, kernels::MhcSizes, kernels::MhcTiles,
    kernels::MhcWorkspace, kernels::MhcWrite;

/// The matrices of one token's maps.
template <class T>
struct TokenMaps {
  const T *pre, *post;  // [n]
  Coefficients<T> res;  // [n, n]

  TokenMaps(const T* maps, int64_t n) : pre(maps), post(maps + n), res{maps + 2 * n, n, 1} {}
};

/// y = H_res x + H_post^T f of one token.
template <class T>
void write_token(const MhcSizes& s, const MhcWrite<T>& w, int64_t t, Store where, T* y) {
  const TokenMaps<T> maps(w.maps + t * s.maps(), s.n);
  const Outer<T> layer{maps.post, w.f + t * s.channels};
  prefetch(w.x + (t + 1) * s.width(), s.width());
  mix_to(where, s.n, s.n, s.channels, maps.res, w.x + t * s.width(), layer, y);
}

template <class T>
void write_range(const MhcSizes& s, const MhcWrite<T>& w, T* y, const MhcRange& range) {
  const Store where = store_for(y, s.tokens * s.width(), s.channels);
  for (int64_t t = range.begin; t < range.end; ++t) write_token(s, w, t, where, y + t * s.width());
  hwy::FlushStream();
}

/// df = H_post dy, dpost_i = <dy_i, f> of one token.
template <class T>
void write_vjp_token(const MhcSizes& s, const MhcWrite<T>& w, int64_t t, const T* dy, T* dpost, T* df) {
  const TokenMaps<T> maps(w.maps + t * s.maps(), s.n);
  inner_products(s.n, 1, s.channels, dy, w.f + t * s.channels, dpost + t * s.n, 1);
  mix(1, s.n, s.channels, {maps.post, 0, 1}, dy, {}, df + t * s.channels);
}

template <class T>
void write_vjp_range(const MhcSizes& s, const MhcWrite<T>& w, const T* dy, T* dpost, T* df, const MhcRange& range) {
  for (int64_t t = range.begin; t < range.end; ++t) {
    prefetch(dy + (t + 1) * s.width(), s.width());
    write_vjp_token(s, w, t, dy + t * s.width(), dpost, df);
  }
}

/// sqrt(mean(x^2) + eps) of one token.
template <class T>
T root_mean_square(const MhcSizes& s, const T* x) {
  const auto squares = static_cast<double>(sum_of_squares(s.n, s.channels, x));
  return static_cast<T>(std::sqrt(squares / static_cast<double>(s.width()) + s.eps));
}

/// Calls f(begin, end, end of the next tile) for each tile.
template <class F>
void for_tiles(const MhcRange& range, F&& f) {
  for (int64_t begin = range.begin; begin < range.end; begin += range.tile) {
    const int64_t end = std::min(begin + range.tile, range.end);
    f(begin, end, std::min(end + range.tile, range.end));
  }
}

/// z [rows, m] = x phi
template <int kN, class T>
void multiply_maps(const MhcSizes& s, int64_t rows, const T* x, const T* phi, T* z, Ahead<T> ahead) {
  if constexpr (kN != 0)
    multiply_thin<kN*(kN + 2)>(rows, s.width(), x, phi, z, ahead);
  else
    gemm_serial<T>(false, false, rows, s.maps(), s.width(), 1, x, s.width(), phi, s.maps(), 0, z, s.maps());
}

/// The pending write of one tile: the new streams, in `room` as well when there is one.
template <class T>
void write_tile(const MhcSizes& s, const MhcWrite<T>& w, T* x, T* room, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    T *x_t = x + t * s.width(), *cached = room == nullptr ? x_t : room + (t - begin) * s.width();
    write_token(s, w, t, Store::cached, cached);
    if (room != nullptr) copy_past_caches(s.width(), cached, x_t);
  }
}

/// z, r, the maps and u of one tile, whose streams x [count, nC] are at hand; for n = 4 `next` is fetched meanwhile.
template <int kN, class T>
void read_tile(const MhcSizes& s, const MhcParams<T>& params, MapLanes<T, kN>& lanes, const T* x, Ahead<T> next,
               const MhcResults<T>& out, int64_t begin, int64_t end) {
  const int64_t m = s.maps(), width = s.width();
  multiply_maps<kN>(s, end - begin, x, params.phi, out.z + begin * m, next);
  for (int64_t t = begin; t < end; ++t) out.r[t] = root_mean_square(s, x + (t - begin) * width);
  for (int64_t t = begin; t < end; t += lanes.lanes())
    lanes.forward(std::min(lanes.lanes(), end - t), out.z + t * m, out.r + t, out.maps + t * m);
  for (int64_t t = begin; t < end; ++t)
    mix(1, s.n, s.channels, {out.maps + t * m, 0, 1}, x + (t - begin) * width, {}, out.u + t * s.channels);
}

template <class T, int kN>
void forward_range(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, const MhcResults<T>& out,
                   T* room, const MhcRange& range) {
  const T* source = before.x != nullptr ? before.x : out.x;
  MapLanes<T, kN> lanes(s, params);
  for_tiles(range, [&](int64_t begin, int64_t end, int64_t next_end) {
    if (before.x != nullptr) write_tile(s, before, out.x, room, begin, end);
    const Ahead<T> next(source + end * s.width(), nullptr, (next_end - end) * s.width());
    read_tile(s, params, lanes, room != nullptr ? room : out.x + begin * s.width(), next, out, begin, end);
  });
  hwy::FlushStream();
}

/// What a token's dx starts from.
template <class T>
struct NormCotangent {
  const T *products, *x;  // [n, C], dz phi^T; [n, C]
  T scale;
  int64_t channels;

  template <class D>
  hn::Vec<D> operator()(D d, int64_t row, int64_t c) const {
    const int64_t at = row * channels + c;
    return hn::NegMulAdd(hn::Set(d, scale), hn::LoadU(d, x + at), hn::LoadU(d, products + at));
  }
};

/// dx = dz phi^T - scale x + H_pre^T du + H_res^T dy of one token. dx may be dy when n <= 4.
template <class T>
void stream_cotangent(const MhcSizes& s, const NormCotangent<T>& start, const T* token_maps, const T* du, const T* dy,
                      Store where, T* dx) {
  const TokenMaps<T> maps(token_maps, s.n);
  mix_from_to(where, start, s.n, dy == nullptr ? 0 : s.n, s.channels, {maps.res.data, 1, s.n}, dy, {maps.pre, du}, dx);
}

/// dmaps [tile, m]: pre <du, x_i>, post as given, res <dy_i, x_j>.
template <class T>
void collect_dmaps(const MhcSizes& s, const T* x, const MhcCotangents<T>& c, T* dmaps, int64_t begin, int64_t end) {
  std::fill_n(dmaps, (end - begin) * s.maps(), T{0});
  for (int64_t t = begin; t < end; ++t, dmaps += s.maps()) {
    const T* x_t = x + t * s.width();
    if (c.du != nullptr) inner_products(s.n, 1, s.channels, x_t, c.du + t * s.channels, dmaps, 1);
    if (c.dpost != nullptr) std::copy_n(c.dpost + t * s.n, s.n, dmaps + s.n);
    if (c.dy != nullptr) inner_products(s.n, s.n, s.channels, c.dy + t * s.width(), x_t, dmaps + 2 * s.n, s.n);
  }
}

/// products = dz phi^T and dphi += x^T dz of one tile, while `next` is fetched. Without panels the tile is the only one
/// and its dphi the whole of it.
template <class T>
void products_of_tile(const MhcSizes& s, const MhcBackward<T>& c, const MhcWorkspace<T>& w, T* dphi, int64_t begin,
                      int64_t end, Ahead<T> next) {
  const int64_t count = end - begin, m = s.maps(), width = s.width(), step = w.product_step(s);
  const T* x = c.saved.x + begin * width;
  if (c.phi_panels != nullptr)
    return product_vjp<T>({count, width, m, x, w.dz, c.phi_panels, dphi, w.products, step}, next);
  gemm<T>(true, false, width, m, count, 1, x, width, w.dz, m, 0, dphi, m);
  gemm<T>(false, true, count, width, m, 1, w.dz, m, c.params.phi, m, 0, w.products, step);
}

/// dx of one tile, and from it the gradients of the write before.
template <class T>
void dx_of_tile(const MhcSizes& s, const MhcBackward<T>& c, const MhcWorkspace<T>& w, int64_t begin, int64_t end) {
  const MhcGradients<T>& grads = c.gradients;
  const T *du = c.cotangents.du, *dy = c.cotangents.dy;
  const int64_t width = s.width();
  // It stays in cache where it is read again, by the write before, or lies there already as dy.
  const bool in_cache = c.before.f != nullptr || grads.dx == dy;
  const Store where = in_cache ? Store::cached : store_for(grads.dx, s.tokens * width, s.channels);
  for (int64_t t = begin, i = 0; t < end; ++t, ++i) {
    const NormCotangent<T> start{w.products + i * w.product_step(s), c.saved.x + t * width, w.scale[i], s.channels};
    T* dx = grads.dx + t * width;
    stream_cotangent(s, start, c.saved.maps + t * s.maps(), du == nullptr ? nullptr : du + t * s.channels,
                     dy == nullptr ? nullptr : dy + t * width, where, dx);
    if (c.before.f != nullptr) write_vjp_token(s, c.before, t, dx, grads.dpost_before, grads.df);
  }
}

/// The gradients of each token, and what the tokens add to those of the parameters.
template <class T, int kN>
void backward_range(const MhcSizes& s, const MhcBackward<T>& c, const MhcParamSums<T>& sums, const MhcWorkspace<T>& w,
                    const MhcRange& range) {
  const int64_t m = s.maps(), width = s.width();
  const T *x = c.saved.x, *dy = c.cotangents.dy;
  MapLanes<T, kN> lanes(s, c.params);
  for_tiles(range, [&](int64_t begin, int64_t end, int64_t next_end) {
    collect_dmaps(s, x, c.cotangents, w.dmaps, begin, end);
    for (int64_t t = begin, i = 0; t < end; t += lanes.lanes(), i += lanes.lanes())
      lanes.backward(std::min(lanes.lanes(), end - t), c.saved.z + t * m, c.saved.r + t, w.dmaps + i * m, w.dz + i * m,
                     w.scale + i, sums.dalpha, sums.dbias);
    const Ahead<T> next(x + end * width, dy == nullptr ? nullptr : dy + end * width, (next_end - end) * width);
    products_of_tile(s, c, w, sums.dphi, begin, end, next);
    dx_of_tile(s, c, w, begin, end);
  });
  hwy::FlushStream();
}

/// Loops are unrolled for n = 4, the paper's.
template <class T>
MhcTiles<T> tiles_for_all_n() {
  return {
      &write_range<T>,
      &write_vjp_range<T>,
      [](const MhcSizes& s, auto... args) { (s.n == 4 ? &forward_range<T, 4> : &forward_range<T, 0>)(s, args...); },
      [](const MhcSizes& s, auto... args) { (s.n == 4 ? &backward_range<T, 4> : &backward_range<T, 0>)(s, args...); },
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

#include <braid/mhc/kernels/mhc_read.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/mhc_read.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/map_products-inl.h>
#include <braid/mhc/kernels/maps-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

/// The arguments of read() by their elements.
template <class S, class T = Compute<S>>
struct Read {
  const MHCSizes& sizes;
  const MHCRead& in;
  T *z, *r, *maps;
  S *written, *u;

  StreamMap<const T> h_res = MapIn{in.h_res, 2}, h_post = MapIn{in.h_post, 1};
  StreamMap<const T> pre = in.pre.defined() ? MapIn{in.pre, 1} : StreamMap<const T>{maps, sizes.maps()};
  const S *x = In{in.x}, *f = In{in.f};  // f is null without a write
  const T* phi = In{in.phi};
};

/// The arguments of vjp().
template <class S, class T = Compute<S>>
struct ReadVjp {
  const MHCSizes& sizes;
  const MHCRead& in;
  const T *z, *r, *maps;
  const S *du, *dy;
  const T *dh_pre, *dh_post;
  MHCRead& d;

  StreamMap<const T> pre = MapIn{in.pre, 1}, h_post = MapIn{in.h_post, 1};
  const S *x = In{in.x}, *f = In{in.f};
  const T* phi = In{in.phi};
  S *dx = Out{d.x}, *df = Out{d.f};
  T *dpre = Out{d.pre}, *dh_post_before = Out{d.h_post};
};

/// sqrt(mean(x^2) + eps) of one token.
template <class T>
T root_mean_square(const MHCSizes& s, const T* x) {
  const auto squares = static_cast<double>(sum_of_squares(s.n, s.channels, x));
  return static_cast<T>(std::sqrt(squares / static_cast<double>(s.width()) + s.eps));
}

/// The pending write of one tile. With `cached` [tile, nC] the new streams are there as well, and stored by
/// non-temporal stores.
template <class S>
void write_tile(const Read<S>& c, S* cached, std::int64_t begin, std::int64_t end) {
  const MHCSizes& s = c.sizes;
  const std::int64_t width = s.width();
  for (std::int64_t t = begin; t < end; ++t) {
    S *written = c.written + t * width, *y = cached == nullptr ? written : cached + (t - begin) * width;
    prefetch(c.x + (t + 1) * width, width);
    mix(s.n, s.n, s.channels, {c.h_res.at(t), s.n, 1}, c.x + t * width, {c.h_post.at(t), c.f + t * s.channels}, y);
    if (cached != nullptr) copy_non_temporal(width, y, written);
  }
}

/// The streams of a tile as the maps compute on them: themselves, or in `wide` where they are bfloat16.
template <class T>
const T* widen_tile(std::int64_t, const T* x, T*) {
  return x;
}
inline const float* widen_tile(std::int64_t count, const bfloat16* x, float* wide) {
  braid::kernels::HWY_NAMESPACE::transform([](auto, auto v) HWY_ATTR { return v; }, count, wide, x);
  return wide;
}

/// The buffers of one tile of the vjp.
template <class S, class T = Compute<S>>
struct TileBuffers {
  T *products, *dz, *dmaps, *scale;  // [tile, product_step()], [tile, columns], [tile, maps], [tile]
  T* wide;                           // [tile, nC], see widen_tile

  /// Rows of `products` lie a little more than a token apart: were it as far as those of x, a processor would take the
  /// load of an x for one of the product just stored.
  static std::int64_t product_step(const MHCSizes& s) { return s.width() + 16; }

  static std::int64_t size(const MHCSizes& s, std::int64_t tile) {
    return tile * (product_step(s) + s.columns() + s.maps() + 1 + (std::is_same_v<S, T> ? 0 : s.width()));
  }

  TileBuffers(const MHCSizes& s, std::int64_t tile, T* scratch)
      : products(scratch),
        dz(products + tile * product_step(s)),
        dmaps(dz + tile * s.columns()),
        scale(dmaps + tile * s.maps()),
        wide(scale + tile) {}
};

/// phi and the sums of the parameters' gradients, to which each tile adds. Without panels of phi, which do not pay for
/// a few tokens, there is at most one tile, whose dphi is written and not added to.
template <class T>
struct ParamSums {
  const T* phi_panels;       // null: none
  T *dphi, *dalpha, *dbias;  // [nC, columns], in panels as phi; [groups]; [columns]
};

/// dmaps [tile, maps]: pre <du, x_i> or as given, post as given, res <dy_i, x_j>.
template <class S, class T = Compute<S>>
void collect_dmaps(const ReadVjp<S>& c, T* dmaps, std::int64_t begin, std::int64_t end) {
  const MHCSizes& s = c.sizes;
  std::fill_n(dmaps, (end - begin) * s.maps(), T{0});
  for (std::int64_t t = begin; t < end; ++t, dmaps += s.maps()) {
    const S* x = c.x + t * s.width();
    T* dread = dmaps;  // of what u was read by
    if (c.pre.data != nullptr) {
      dread = c.dpre + t * s.n;
      std::fill_n(dread, s.n, T{0});
      if (c.dh_pre != nullptr) std::copy_n(c.dh_pre + t * s.n, s.n, dmaps);
    }
    if (c.du != nullptr) inner_products(s.n, 1, s.channels, x, c.du + t * s.channels, dread);
    if (c.dh_post != nullptr) std::copy_n(c.dh_post + t * s.n, s.n, dmaps + s.n);
    if (c.dy != nullptr) inner_products(s.n, s.n, s.channels, c.dy + t * s.width(), x, dmaps + 2 * s.n);
  }
}

/// products = dz phi^T and dphi += x^T dz of one tile, while `next` is prefetched.
template <class S, class T = Compute<S>>
void products_of_tile(const ReadVjp<S>& c, const TileBuffers<S>& tile, const ParamSums<T>& sums, std::int64_t begin,
                      std::int64_t end, Prefetcher next) {
  const MHCSizes& s = c.sizes;
  const std::int64_t count = end - begin, m = s.columns(), width = s.width(), step = tile.product_step(s);
  const S* x = c.x + begin * width;
  if (sums.phi_panels != nullptr)
    return product_vjp<S>({count, width, m, x, tile.dz, sums.phi_panels, sums.dphi, tile.products, step}, next);
  const T* wide = widen_tile(count * width, x, tile.wide);
  const MatrixView<const T> x_rows{wide, width}, dz{tile.dz, m}, phi{c.phi, m};
  gemm<T>({.m = width, .n = m, .k = count, .a = x_rows.transpose(), .b = dz, .c = {sums.dphi, m}});
  gemm<T>({.m = count, .n = width, .k = m, .a = dz, .b = phi.transpose(), .c = {tile.products, step}});
}

/// dx = dz phi^T - scale x + H_pre^T du + H_res^T dy of one tile, and from it the vjp of the write before:
/// dh_post_i = <dx_i, f>, df = H_post dx.
template <class S, class T = Compute<S>>
void dx_of_tile(const ReadVjp<S>& c, const TileBuffers<S>& tile, std::int64_t begin, std::int64_t end) {
  const MHCSizes& s = c.sizes;
  const std::int64_t n = s.n, channels = s.channels, width = s.width();
  // It stays in cache where it is read again, by the write before, or lies there already as dy.
  const bool in_cache = c.f != nullptr || c.dx == c.dy;
  const Store where = in_cache ? Store::cached : store_for(c.dx, s.tokens * width, channels);
  for (std::int64_t t = begin, i = 0; t < end; ++t, ++i) {
    const T *products = tile.products + i * tile.product_step(s), scale = tile.scale[i];
    const S* x = c.x + t * width;
    const auto start = [=](auto d, std::int64_t row, std::int64_t channel) HWY_ATTR {  // dz phi^T - scale x
      const std::int64_t at = row * channels + channel;
      return hn::NegMulAdd(hn::Set(d, scale), load(d, x + at), hn::LoadU(d, products + at));
    };
    const T* maps = c.maps + t * s.maps();
    const T *h_pre = c.pre.data != nullptr ? c.pre.at(t) : maps, *h_res = maps + 2 * n;
    const S *du = at(c.du, t * channels), *dy = at(c.dy, t * width);
    S* dx = c.dx + t * width;
    mix_to(where, start, n, dy == nullptr ? 0 : n, channels, {h_res, 1, n}, dy, {h_pre, du}, dx);
    if (c.f == nullptr) continue;
    inner_products(n, 1, channels, dx, c.f + t * channels, c.dh_post_before + t * n);
    mix(1, n, channels, {c.h_post.at(t), 0, 1}, dx, {}, c.df + t * channels);
  }
}

/// Tokens per tile: the streams of a tile and of the next, their gradients and phi should stay in the second-level
/// cache together, and a tile should fill the SIMD lanes of the maps, which take 16 tokens at a time.
template <class T>
std::int64_t tile_size(const MHCSizes& s) {
  constexpr std::int64_t kBytes = 128 * 1024, kLanes = kMostTokens / 2;
  const std::int64_t fits = kBytes / std::max<std::int64_t>(1, s.width() * static_cast<std::int64_t>(sizeof(T)));
  return std::clamp(fits / kLanes * kLanes, kLanes, 2 * kLanes);
}

/// Tokens whose share of the parameters' gradients is summed by one thread: enough that these sums, m values for each
/// of the nC of a token, are a tenth of the streams at n = 4.
constexpr std::int64_t kGroup = 256;

/// Groups of at least `size` tokens, in whole tiles.
template <class T>
Tiles groups_of(const MHCSizes& s, std::int64_t size) {
  const std::int64_t tile = tile_size<T>(s);
  return {s.tokens, std::max(tile, braid::kernels::round_up(size, tile))};
}

/// Calls f(begin, end, end of the next tile) for each tile of a group.
void for_tiles(std::int64_t begin, std::int64_t end, std::int64_t tile, auto&& f) {
  for (; begin < end; begin += tile) f(begin, std::min(begin + tile, end), std::min(begin + 2 * tile, end));
}

/// z, r, the maps and u of a group of tokens. The streams of a tile [tile, nC] are kept in cache as they are stored, in
/// `stored` when that is by non-temporal stores, and as they are computed with, in `wide` when they are bfloat16.
template <class S, class T = Compute<S>>
void read_group(const Read<S>& c, S* stored, T* wide, std::int64_t first, std::int64_t last) {
  const MHCSizes& s = c.sizes;
  const bool pending = c.f != nullptr;
  const std::int64_t columns = s.columns(), m = s.maps(), width = s.width();
  const S* streams = pending ? c.written : c.x;
  MapLanes<T> lanes(s, c.in);
  for_tiles(first, last, tile_size<T>(s), [&](std::int64_t begin, std::int64_t end, std::int64_t next_end) HWY_ATTR {
    if (pending) write_tile(c, stored, begin, end);
    const T* x = widen_tile((end - begin) * width, stored != nullptr ? stored : streams + begin * width, wide);
    multiply_thin<T>({end - begin, width, columns, x, c.phi, c.z + begin * columns},
                     Prefetcher(c.x + end * width, nullptr, (next_end - end) * width));
    for (std::int64_t t = begin; t < end; ++t) c.r[t] = root_mean_square(s, x + (t - begin) * width);
    for (std::int64_t t = begin; t < end; t += lanes.lanes())
      lanes.forward(std::min(lanes.lanes(), end - t), c.z + t * columns, c.r + t, c.maps + t * m);
    for (std::int64_t t = begin; t < end; ++t)
      mix(1, s.n, s.channels, {c.pre.at(t), 0, 1}, x + (t - begin) * width, {}, c.u + t * s.channels);
  });
  hwy::FlushStream();
}

template <class S>
void read(const MHCSizes& s, const MHCRead& in, MHCSaved& saved, Tensor& written, Tensor& u) {
  const Read<S> c{s, in, Out{saved.z}, Out{saved.r}, Out{saved.maps}, Out{written}, Out{u}};
  // Nothing is summed, so the groups may depend on the number of threads: long ones, but some for every thread.
  const Tiles groups = groups_of<S>(s, std::min(kGroup, s.tokens / (4 * num_threads())));
  const bool streamed = c.f != nullptr && non_temporal(c.written, s.tokens * s.width(), s.channels);
  const std::int64_t size = tile_size<S>(s) * s.width();
  Scratch<S> stored(streamed ? size : 0);
  Scratch<Compute<S>> wide(std::is_same_v<S, Compute<S>> ? 0 : size);
  groups.for_each([&](std::int64_t first, std::int64_t last) {
    stored.lend([&](S* tile) {
      wide.lend([&](Compute<S>* wide_tile) { read_group<S>(c, streamed ? tile : nullptr, wide_tile, first, last); });
    });
  });
}

/// The gradients of each token of a group, and what the tokens add to those of the parameters.
template <class S, class T = Compute<S>>
void vjp_group(const ReadVjp<S>& c, const ParamSums<T>& sums, T* scratch, std::int64_t first, std::int64_t last) {
  const MHCSizes& s = c.sizes;
  const std::int64_t columns = s.columns(), m = s.maps(), width = s.width(), size = tile_size<S>(s);
  const TileBuffers<S> tile(s, size, scratch);
  MapLanes<T> lanes(s, c.in);
  for_tiles(first, last, size, [&](std::int64_t begin, std::int64_t end, std::int64_t next_end) HWY_ATTR {
    collect_dmaps(c, tile.dmaps, begin, end);
    for (std::int64_t t = begin, i = 0; t < end; t += lanes.lanes(), i += lanes.lanes())
      lanes.backward(std::min(lanes.lanes(), end - t), c.z + t * columns, c.r + t, c.maps + t * m, tile.dmaps + i * m,
                     tile.dz + i * columns, tile.scale + i, sums.dalpha, sums.dbias);
    const Prefetcher next(c.x + end * width, at(c.dy, end * width), (next_end - end) * width);
    products_of_tile(c, tile, sums, begin, end, next);
    dx_of_tile(c, tile, begin, end);
  });
  hwy::FlushStream();
}

template <class S, class T = Compute<S>>
void vjp(const MHCSizes& s, const MHCRead& in, const MHCSaved& saved, const Tensor& du, const Tensor& dy,
         const Tensor& dh_pre, const Tensor& dh_post, MHCRead& d) {
  constexpr std::int64_t kFew = 16;  // tokens for which panels do not pay
  const ReadVjp<S> c{s, in, In{saved.z}, In{saved.r}, In{saved.maps}, In{du}, In{dy}, In{dh_pre}, In{dh_post}, d};
  const ParamSums<T> results{nullptr, Out{d.phi}, Out{d.alpha}, Out{d.bias}};
  const std::int64_t width = s.width(), m = s.columns(), dphi_size = panels_size(width, m);
  const std::int64_t tile_elements = TileBuffers<S>::size(s, tile_size<S>(s));
  if (s.tokens < kFew) {
    if (s.tokens == 0) std::fill_n(results.dphi, width * m, T{0});
    std::fill_n(results.dalpha, s.groups(), T{0});
    std::fill_n(results.dbias, m, T{0});
    Buffer<T> buffer(tile_elements);
    return vjp_group<S>(c, results, buffer.data(), 0, s.tokens);
  }
  Tensor panels = zeros({dphi_size}, dtype_of<T>());
  T* const phi = panels.mutable_data<T>();
  for_panels(width, m, [=, from = c.phi](std::int64_t packed, std::int64_t i) { phi[packed] = from[i]; });
  Scratch<T> scratch(tile_elements);
  const auto vjp_of_group = [&](T* dphi, std::int64_t first, std::int64_t last) {
    T* dalpha = dphi + dphi_size;
    scratch.lend([&](T* buffer) { vjp_group<S>(c, {phi, dphi, dalpha, dalpha + s.groups()}, buffer, first, last); });
  };
  sum_over_tiles<T>(groups_of<S>(s, kGroup), dphi_size + s.groups() + m, vjp_of_group, [&](const T* sums) {
    for_panels(width, m, [=, to = results.dphi](std::int64_t packed, std::int64_t i) { to[i] = sums[packed]; });
    std::copy_n(sums + dphi_size, s.groups(), results.dalpha);
    std::copy_n(sums + dphi_size + s.groups(), m, results.dbias);
  });
}

template <class T>
constexpr MHCReadKernels<T> kTable = {.read = read<T>, .vjp = vjp<T>};

braid::kernels::Tables<MHCReadKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<MHCReadKernels> mhc_read_kernels())

#include <braid/mhc/kernels/mhc_read.h>

#include <algorithm>
#include <type_traits>

#include <braid/core/kernels/scratch.h>
#include <braid/core/tensor.h>
#include <braid/mhc/kernels/tiles.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/mhc_read.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/mhc/kernels/mhc_read_tile-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

using braid::kernels::Buffer, braid::kernels::Scratch;

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
template <class F>
void for_tiles(std::int64_t begin, std::int64_t end, std::int64_t tile, F&& f) {
  for (; begin < end; begin += tile) f(begin, std::min(begin + tile, end), std::min(begin + 2 * tile, end));
}

/// Where the streams of a tile [tile, nC] are kept in cache: as they are stored, when that is by non-temporal stores,
/// and as they are computed with, when they are bfloat16.
template <class S>
struct CachedTile {
  S* stored = nullptr;
  Compute<S>* wide = nullptr;
};

/// All tiles of a group of tokens.
template <class S, class T = Compute<S>>
void read_group(const MHCRead<S>& c, CachedTile<S> cached, std::int64_t first, std::int64_t last) {
  const bool pending = c.before.f != nullptr;
  const std::int64_t width = c.sizes.width();
  const S *source = pending ? c.before.x : c.x, *streams = pending ? c.written : c.x;
  MapLanes<T> lanes(c.sizes, c.params);
  for_tiles(first, last, tile_size<T>(c.sizes), [&](std::int64_t begin, std::int64_t end, std::int64_t next_end) {
    if (pending) write_tile(c, cached.stored, begin, end);
    const Prefetcher next(source + end * width, nullptr, (next_end - end) * width);
    const S* x = cached.stored != nullptr ? cached.stored : streams + begin * width;
    read_tile(c, lanes, widen_tile((end - begin) * width, x, cached.wide), next, begin, end);
  });
  hwy::FlushStream();
}

template <class S>
void read(const MHCRead<S>& c) {
  const MHCSizes& s = c.sizes;
  // Nothing is summed, so the groups may depend on the number of threads: long ones, but some for every thread.
  const Tiles groups = groups_of<S>(s, std::min(kGroup, s.tokens / (4 * num_threads())));
  const bool streamed = c.before.f != nullptr && non_temporal(c.written, s.tokens * s.width(), s.channels);
  constexpr bool kWidens = !std::is_same_v<S, Compute<S>>;
  if (!streamed && !kWidens)
    return groups.for_each([&](std::int64_t first, std::int64_t last) { read_group<S>(c, {}, first, last); });
  const std::int64_t size = tile_size<S>(s) * s.width();
  Scratch<S> stored(streamed ? size : 0);
  Scratch<Compute<S>> wide(kWidens ? size : 0);
  groups.for_each([&](std::int64_t first, std::int64_t last) {
    stored.lend([&](S* tile) {
      wide.lend([&](Compute<S>* wide_tile) {
        read_group(c, CachedTile<S>{streamed ? tile : nullptr, wide_tile}, first, last);
      });
    });
  });
}

/// All tiles of a group of tokens.
template <class S, class T = Compute<S>>
void vjp_group(const MHCReadVjp<S>& c, const ParamSums<T>& sums, T* scratch, std::int64_t first, std::int64_t last) {
  const MHCSizes& s = c.sizes;
  const std::int64_t width = s.width(), tile = tile_size<S>(s);
  const TileBuffers<S> buffers(s, tile, scratch);
  MapLanes<T> lanes(s, c.params);
  for_tiles(first, last, tile, [&](std::int64_t begin, std::int64_t end, std::int64_t next_end) {
    const S* dy = c.dy == nullptr ? nullptr : c.dy + end * width;
    vjp_tile(c, lanes, buffers, sums, Prefetcher(c.x + end * width, dy, (next_end - end) * width), begin, end);
  });
  hwy::FlushStream();
}

template <class S, class T = Compute<S>>
void vjp(const MHCReadVjp<S>& c) {
  constexpr std::int64_t kFew = 16;  // tokens for which panels do not pay
  const MHCSizes& s = c.sizes;
  const std::int64_t width = s.width(), m = s.columns(), dphi_size = panels_size(width, m);
  const std::int64_t tile_elements = TileBuffers<S>::size(s, tile_size<S>(s));
  if (s.tokens < kFew) {
    if (s.tokens == 0) std::fill_n(c.dphi, width * m, T{0});
    std::fill_n(c.dalpha, s.groups(), T{0});
    std::fill_n(c.dbias, m, T{0});
    Buffer<T> buffer(tile_elements);
    return vjp_group<S>(c, {nullptr, c.dphi, c.dalpha, c.dbias}, buffer.data(), 0, s.tokens);
  }
  Tensor panels = zeros({dphi_size}, dtype_of<T>());
  T* const phi = panels.mutable_data<T>();
  pack_panels(width, m, c.params.phi, phi);
  Scratch<T> scratch(tile_elements);
  const auto vjp_of_group = [&](T* dphi, std::int64_t first, std::int64_t last) {
    T* dalpha = dphi + dphi_size;
    scratch.lend([&](T* buffer) { vjp_group<S>(c, {phi, dphi, dalpha, dalpha + s.groups()}, buffer, first, last); });
  };
  sum_over_tiles<T>(groups_of<S>(s, kGroup), dphi_size + s.groups() + m, vjp_of_group, [&](const T* sums) {
    unpack_panels(width, m, sums, c.dphi);
    std::copy_n(sums + dphi_size, s.groups(), c.dalpha);
    std::copy_n(sums + dphi_size + s.groups(), m, c.dbias);
  });
}

template <class T>
constexpr MHCReadKernels<T> kTable = {.read = read<T>, .vjp = vjp<T>};

braid::kernels::Tables<MHCReadKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<MHCReadKernels> mhc_read_kernels())

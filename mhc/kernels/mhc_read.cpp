#include <braid/mhc/kernels/mhc_read.h>

#include <algorithm>

#include <braid/core/parallel.h>
#include <braid/core/tensor.h>
#include <braid/mhc/kernels/mhc_read_tiles.h>
#include <braid/mhc/kernels/panels.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc::kernels {
namespace {

/// Tokens a tile: the streams of a tile and of the next, their gradients and phi should stay in the second-level cache
/// together, and a tile should fill the SIMD lanes of the maps, which take 16 tokens at a time.
template <class T>
std::int64_t tile_of(const MhcSizes& s) {
  constexpr std::int64_t kBytes = 128 * 1024, kLanes = 16;
  const std::int64_t fits = kBytes / std::max<std::int64_t>(1, s.width() * static_cast<std::int64_t>(sizeof(T)));
  return std::clamp(fits / kLanes * kLanes, kLanes, 2 * kLanes);
}

/// Tokens whose share of the parameters' gradients is summed by one thread: enough that these sums, m numbers for each
/// of the nC of a token, are a tenth of the streams at n = 4.
constexpr std::int64_t kGroup = 256;

/// At least `tokens`, in whole tiles.
template <class T>
std::int64_t whole_tiles(const MhcSizes& s, std::int64_t tokens) {
  const std::int64_t tile = tile_of<T>(s);
  return std::max<std::int64_t>(1, (tokens + tile - 1) / tile) * tile;
}

/// Calls f(range) for ranges of `tokens` tokens, whole tiles, on all threads.
template <class T, class F>
void for_ranges(const MhcSizes& s, std::int64_t tokens, F&& f) {
  parallel_for(s.tokens, tokens, [&](std::int64_t begin, std::int64_t end) { f(MhcRange{begin, end, tile_of<T>(s)}); });
}

/// Where nothing is summed the ranges may depend on the number of threads: long ones, but some for every thread.
template <class T>
std::int64_t shared_evenly(const MhcSizes& s) {
  return whole_tiles<T>(s, std::min(kGroup, s.tokens / (4 * num_threads())));
}

/// A buffer that lives as long as the call, from the caching allocator.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t size) : tensor_({size}, dtype_of<T>()) {}
  T* data() { return tensor_.template mutable_data<T>(); }

 private:
  Tensor tensor_;
};

/// Memory for the workspace of one thread.
template <class T>
class TileRoom {
 public:
  explicit TileRoom(const MhcSizes& s)
      : tile_(tile_of<T>(s)),
        step_(MhcWorkspace<T>::product_step(s)),
        m_(s.maps()),
        scratch_(tile_ * (step_ + 2 * m_ + 1)) {}

  MhcWorkspace<T> workspace() {
    T *const products = scratch_.data(), *const dz = products + tile_ * step_, *const dmaps = dz + tile_ * m_;
    return {products, dz, dmaps, dmaps + tile_ * m_};
  }

 private:
  std::int64_t tile_, step_, m_;
  Scratch<T> scratch_;
};

/// What the last panel lacks in rows is neither set nor read.
template <class T>
class PhiPanels {
 public:
  PhiPanels(const MhcSizes& s, const T* phi) : scratch_(panels_size(s.width(), s.maps())) {
    T* const panels = scratch_.data();
    for_panels(s.width(), s.maps(), [&](std::int64_t packed, std::int64_t i) { panels[packed] = phi[i]; });
  }
  const T* data() { return scratch_.data(); }

 private:
  Scratch<T> scratch_;
};

/// Sums of the parameters' gradients, a row for every group of tokens, dphi in panels.
template <class T>
class GroupSums {
 public:
  GroupSums(const MhcSizes& s, std::int64_t groups)
      : s_(s),
        groups_(groups),
        dphi_size_(panels_size(s.width(), s.maps())),
        size_((dphi_size_ + 3 + s.maps() + kPanel - 1) / kPanel * kPanel),
        rows_(groups * size_) {}

  /// Zeros for one group.
  MhcParamSums<T> start(std::int64_t group) {
    T* row = rows_.data() + group * size_;
    std::fill_n(row, size_, T{0});
    return {row, row + dphi_size_, row + dphi_size_ + 3};
  }

  /// Adds the rows in the order of the groups.
  void add_up(const MhcGradients<T>& total) {
    T* const rows = rows_.data();
    parallel_for(size_, 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = 1; group < groups_; ++group)
        for (std::int64_t i = begin; i < end; ++i) rows[i] += rows[group * size_ + i];
    });
    for_panels(s_.width(), s_.maps(), [&](std::int64_t packed, std::int64_t i) { total.dphi[i] = rows[packed]; });
    std::copy_n(rows + dphi_size_, 3, total.dalpha);
    std::copy_n(rows + dphi_size_ + 3, s_.maps(), total.dbias);
  }

 private:
  const MhcSizes& s_;
  std::int64_t groups_, dphi_size_, size_;
  Scratch<T> rows_;
};

}  // namespace

template <class T>
void mhc_forward(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, T* x, T* z, T* r, T* maps,
                 T* u) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  const bool past = before.x != nullptr && past_caches(x, s.tokens * s.width(), s.channels);
  for_ranges<T>(s, shared_evenly<T>(s), [&](const MhcRange& range) {
    Scratch<T> room(past ? range.tile * s.width() : 0);
    tiles.forward(s, params, before, {x, z, r, maps, u}, past ? room.data() : nullptr, range);
  });
}

template <class T>
void mhc_backward(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, const MhcSaved<T>& saved,
                  const MhcCotangents<T>& cotangents, const MhcGradients<T>& grads) {
  constexpr std::int64_t kFew = 16;  // tokens for which panels do not pay
  const MhcTiles<T> tiles = mhc_tiles<T>();
  if (s.tokens < kFew) {
    if (s.tokens == 0) std::fill_n(grads.dphi, s.width() * s.maps(), T{0});
    std::fill_n(grads.dalpha, 3, T{0});
    std::fill_n(grads.dbias, s.maps(), T{0});
    TileRoom<T> room(s);
    return tiles.backward(s, {params, nullptr, before, saved, cotangents, grads},
                          {grads.dphi, grads.dalpha, grads.dbias}, room.workspace(), {0, s.tokens, tile_of<T>(s)});
  }
  PhiPanels<T> phi(s, params.phi);
  const MhcBackward<T> call{params, phi.data(), before, saved, cotangents, grads};
  const std::int64_t group = whole_tiles<T>(s, kGroup);
  GroupSums<T> sums(s, (s.tokens + group - 1) / group);
  for_ranges<T>(s, group, [&](const MhcRange& range) {
    TileRoom<T> room(s);
    tiles.backward(s, call, sums.start(range.begin / group), room.workspace(), range);
  });
  sums.add_up(grads);
}

template <class T>
void mhc_write(const MhcSizes& s, const MhcWrite<T>& write, T* y) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  for_ranges<T>(s, shared_evenly<T>(s), [&](const MhcRange& range) { tiles.write(s, write, y, range); });
}

template <class T>
void mhc_write_vjp(const MhcSizes& s, const MhcWrite<T>& write, const T* dy, T* dpost, T* df) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  for_ranges<T>(s, shared_evenly<T>(s),
                [&](const MhcRange& range) { tiles.write_vjp(s, write, dy, dpost, df, range); });
}

template void mhc_forward(const MhcSizes&, const MhcParams<float>&, const MhcWrite<float>&, float*, float*, float*,
                          float*, float*);
template void mhc_forward(const MhcSizes&, const MhcParams<double>&, const MhcWrite<double>&, double*, double*, double*,
                          double*, double*);
template void mhc_backward(const MhcSizes&, const MhcParams<float>&, const MhcWrite<float>&, const MhcSaved<float>&,
                           const MhcCotangents<float>&, const MhcGradients<float>&);
template void mhc_backward(const MhcSizes&, const MhcParams<double>&, const MhcWrite<double>&, const MhcSaved<double>&,
                           const MhcCotangents<double>&, const MhcGradients<double>&);
template void mhc_write(const MhcSizes&, const MhcWrite<float>&, float*);
template void mhc_write(const MhcSizes&, const MhcWrite<double>&, double*);
template void mhc_write_vjp(const MhcSizes&, const MhcWrite<float>&, const float*, float*, float*);
template void mhc_write_vjp(const MhcSizes&, const MhcWrite<double>&, const double*, double*, double*);

}  // namespace braid::mhc::kernels

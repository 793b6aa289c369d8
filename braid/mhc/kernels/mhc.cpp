#include <braid/mhc/kernels/mhc.h>

#include <algorithm>

#include <braid/core/gemm.h>
#include <braid/core/parallel.h>
#include <braid/core/tensor.h>
#include <braid/mhc/kernels/mhc_tiles.h>

namespace braid::mhc::kernels {
namespace {

/// Tokens a tile: the stream of a tile and of its gradient should stay in the second-level cache, and a tile should
/// fill the SIMD lanes of the maps, which take 16 tokens at a time.
template <class T>
std::int64_t tile_of(const MhcSizes& s) {
  constexpr std::int64_t kBytes = 256 * 1024, kLanes = 16;
  const std::int64_t fits = kBytes / std::max<std::int64_t>(1, s.width() * static_cast<std::int64_t>(sizeof(T)));
  return std::clamp(fits / kLanes * kLanes, kLanes, 4 * kLanes);
}

/// Tokens whose share of the parameters' gradients is summed by one thread: enough that these sums, m numbers for each
/// of the nC of a token, are a tenth of the streams.
constexpr std::int64_t kGroup = 256;

/// A buffer that lives as long as the call, from the caching allocator.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t size) : tensor_({size}, dtype_of<T>()) {}
  T* data() { return tensor_.template mutable_data<T>(); }

 private:
  Tensor tensor_;
};

/// Where a group of tokens sums the gradients of the parameters: [nC, m], [3], [m].
template <class T>
struct ParamSums {
  T *dphi, *dalpha, *dbias;
};

template <class T>
void clear(const ParamSums<T>& sums, const MhcSizes& s) {
  std::fill_n(sums.dphi, s.width() * s.maps(), T{0});
  std::fill_n(sums.dalpha, 3, T{0});
  std::fill_n(sums.dbias, s.maps(), T{0});
}

/// total [size] += `count` rows, in their order.
template <class T>
void add_rows(const T* rows, std::int64_t count, std::int64_t row_step, std::int64_t size, T* total) {
  parallel_for(size, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < count; ++row)
      for (std::int64_t i = begin; i < end; ++i) total[i] += rows[row * row_step + i];
  });
}

}  // namespace

template <class T>
void mhc_forward(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, T* x, T* z, T* r, T* maps,
                 T* u) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  parallel_for(s.tokens, tile_of<T>(s), [&](std::int64_t begin, std::int64_t end) {
    tiles.forward(s, params, before, x, z, r, maps, u, begin, end);
  });
}

template <class T>
void mhc_backward(const MhcSizes& s, const MhcParams<T>& params, const MhcWrite<T>& before, const MhcSaved<T>& saved,
                  const MhcCotangents<T>& cotangents, const MhcGradients<T>& grads) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  const std::int64_t tile = tile_of<T>(s), m = s.maps(), width = s.width();
  const std::int64_t group = (kGroup + tile - 1) / tile * tile, groups = (s.tokens + group - 1) / group;
  const std::int64_t size = width * m + 3 + m;
  Scratch<T> room_for_sums(std::max<std::int64_t>(0, groups - 1) * size);
  T* const rows = room_for_sums.data();
  // The first group sums in place, each other one in a row of its own.
  const auto sums_of = [&](std::int64_t index) -> ParamSums<T> {
    if (index == 0) return {grads.dphi, grads.dalpha, grads.dbias};
    T* row = rows + (index - 1) * size;
    return {row, row + width * m, row + width * m + 3};
  };
  clear(sums_of(0), s);
  parallel_for(s.tokens, group, [&](std::int64_t begin, std::int64_t end) {
    const ParamSums<T> sums = sums_of(begin / group);
    if (begin != 0) clear(sums, s);
    Scratch<T> room(tile * (width + 2 * m + 1));
    T *const products = room.data(), *const dz = products + tile * width, *const dmaps = dz + tile * m;
    const MhcWorkspace<T> workspace{products, dz, dmaps, dmaps + tile * m, sums.dphi, sums.dalpha, sums.dbias};
    for (std::int64_t t = begin; t < end; t += tile)
      tiles.backward(s, params, before, saved, cotangents, grads, workspace, t, std::min(t + tile, end));
  });
  add_rows(rows, groups - 1, size, width * m, grads.dphi);
  add_rows(rows + width * m, groups - 1, size, std::int64_t{3}, grads.dalpha);
  add_rows(rows + width * m + 3, groups - 1, size, m, grads.dbias);
}

template <class T>
void mhc_write(const MhcSizes& s, const MhcWrite<T>& write, T* y) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  parallel_for(s.tokens, tile_of<T>(s),
               [&](std::int64_t begin, std::int64_t end) { tiles.write(s, write, y, begin, end); });
}

template <class T>
void mhc_write_vjp(const MhcSizes& s, const MhcWrite<T>& write, const T* dy, T* dpost, T* df) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  parallel_for(s.tokens, tile_of<T>(s),
               [&](std::int64_t begin, std::int64_t end) { tiles.write_vjp(s, write, dy, dpost, df, begin, end); });
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

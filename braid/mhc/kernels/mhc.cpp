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

/// A buffer that lives as long as the call, from the caching allocator.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t size) : tensor_({size}, dtype_of<T>()) {}
  T* data() { return tensor_.template mutable_data<T>(); }

 private:
  Tensor tensor_;
};

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
  const std::int64_t tile = tile_of<T>(s), count = (s.tokens + tile - 1) / tile, m = s.maps();
  Scratch<T> dz_buffer(s.tokens * m), sums_buffer(count * (3 + m));
  T *dz = dz_buffer.data(), *sums = sums_buffer.data();
  std::fill_n(sums, count * (3 + m), T{0});
  parallel_for(s.tokens, tile, [&](std::int64_t begin, std::int64_t end) {
    tiles.backward(s, params, before, saved, cotangents, grads, dz, sums + begin / tile * (3 + m), begin, end);
  });
  gemm<T>(true, false, s.width(), m, s.tokens, 1, saved.x, s.width(), dz, m, 0, grads.dphi, m);
  std::fill_n(grads.dalpha, 3, T{0});
  std::fill_n(grads.dbias, m, T{0});
  for (std::int64_t i = 0; i < count; ++i, sums += 3 + m) {
    for (std::int64_t e = 0; e < 3; ++e) grads.dalpha[e] += sums[e];
    for (std::int64_t e = 0; e < m; ++e) grads.dbias[e] += sums[3 + e];
  }
}

template <class T>
void mhc_write(const MhcSizes& s, const MhcWrite<T>& write, T* y) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  parallel_for(s.tokens, tile_of<T>(s),
               [&](std::int64_t begin, std::int64_t end) { tiles.write(s, write, y, begin, end); });
}

template <class T>
void mhc_write_vjp(const MhcSizes& s, const MhcWrite<T>& write, const T* dy, T* dmaps, T* df) {
  const MhcTiles<T> tiles = mhc_tiles<T>();
  parallel_for(s.tokens, tile_of<T>(s),
               [&](std::int64_t begin, std::int64_t end) { tiles.write_vjp(s, write, dy, dmaps, df, begin, end); });
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

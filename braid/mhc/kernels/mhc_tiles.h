#pragma once
#include <cstdint>

#include <braid/mhc/kernels/mhc.h>

namespace braid::mhc::kernels {

/// Room for one tile, and the sums over the tiles of one group, to which a tile adds.
template <class T>
struct MhcWorkspace {
  T *products, *dz, *dmaps, *scale;  // [tile, nC], [tile, m], [tile, m], [tile]
  T *dphi, *dalpha, *dbias;          // [nC, m], [3], [m]
};

/// The kernels over tokens [begin, end), as compiled for one SIMD target.
template <class T>
struct MhcTiles {
  void (*write)(const MhcSizes&, const MhcWrite<T>&, T* y, std::int64_t begin, std::int64_t end);
  void (*write_vjp)(const MhcSizes&, const MhcWrite<T>&, const T* dy, T* dpost, T* df, std::int64_t begin,
                    std::int64_t end);
  void (*forward)(const MhcSizes&, const MhcParams<T>&, const MhcWrite<T>& before, T* x, T* z, T* r, T* maps, T* u,
                  std::int64_t begin, std::int64_t end);
  /// Gradients of the parameters go to the workspace.
  void (*backward)(const MhcSizes&, const MhcParams<T>&, const MhcWrite<T>& before, const MhcSaved<T>&,
                   const MhcCotangents<T>&, const MhcGradients<T>&, const MhcWorkspace<T>&, std::int64_t begin,
                   std::int64_t end);
};

/// Those of the best target that this processor has.
template <class T>
MhcTiles<T> mhc_tiles();

}  // namespace braid::mhc::kernels

#pragma once
#include <cstdint>

#include <braid/mhc/kernels/mhc_read.h>

namespace braid::mhc::kernels {

/// Tokens [begin, end), worked on in tiles of `tile` that stay in cache.
struct MhcRange {
  std::int64_t begin, end, tile;
};

/// What the forward pass leaves.
template <class T>
struct MhcResults {
  T *x, *z, *r, *maps, *u;  // as in mhc_forward
};

/// Gradients of the parameters, to which each tile adds.
template <class T>
struct MhcParamSums {
  T *dphi, *dalpha, *dbias;  // [nC, m] or its panels, [3], [m]
};

/// Room for one tile of the backward pass.
template <class T>
struct MhcWorkspace {
  T *products, *dz, *dmaps, *scale;  // [tile, product_step()], [tile, m], [tile, m], [tile]

  /// Rows of `products` lie a little more than a token apart: were it as far as those of x, a processor would take the
  /// load of an x for one of the product just stored.
  static std::int64_t product_step(const MhcSizes& s) { return s.width() + 16; }
};

/// A backward pass. `phi_panels` is null when the tokens are too few for it to pay: at most one tile, whose dphi [nC,
/// m] is written and not added to.
template <class T>
struct MhcBackward {
  const MhcParams<T>& params;
  const T* phi_panels;
  const MhcWrite<T>& before;
  const MhcSaved<T>& saved;
  const MhcCotangents<T>& cotangents;
  const MhcGradients<T>& gradients;
};

/// The kernels over a range of tokens, as compiled for one SIMD target.
template <class T>
struct MhcTiles {
  void (*write)(const MhcSizes&, const MhcWrite<T>&, T* y, const MhcRange&);
  void (*write_vjp)(const MhcSizes&, const MhcWrite<T>&, const T* dy, T* dpost, T* df, const MhcRange&);
  /// `room` [tile, nC] holds the streams of a tile while x goes past the caches; else it is null.
  void (*forward)(const MhcSizes&, const MhcParams<T>&, const MhcWrite<T>& before, const MhcResults<T>&, T* room,
                  const MhcRange&);
  void (*backward)(const MhcSizes&, const MhcBackward<T>&, const MhcParamSums<T>&, const MhcWorkspace<T>&,
                   const MhcRange&);
};

/// Those of the best target that this processor has.
template <class T>
MhcTiles<T> mhc_tiles();

}  // namespace braid::mhc::kernels

#pragma once
#include <braid/core/kernels/tables.h>
#include <braid/mhc/mixings/mixing.h>

namespace braid::mhc::mixings {

/// A mixing and its vjp for several matrices at once, one per lane of the best instruction set's vectors: entry e of
/// all matrices is the vector at e * lanes, as is logit e. Callers pass workspaces, and no memory overlaps.
template <class T>
struct Kernels {
  /// h [n n] of logits [m].
  void (*forward)(const Mixing&, const T* logits, T* h, T* workspace);
  /// dlogits [m] from the cotangent dh [n n] of the result h.
  void (*vjp)(const Mixing&, const T* logits, const T* h, const T* dh, T* dlogits, T* workspace);
  /// The number of vectors of workspace that either needs.
  std::int64_t (*workspace)(const Mixing&);
};

}  // namespace braid::mhc::mixings

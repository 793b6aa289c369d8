#pragma once
#include <braid/core/kernels/tables.h>
#include <braid/mhc/mixings/mixing_settings.h>

namespace braid::mhc::mixings {

/// A mixing of logits [m] into matrices [n, n].
struct Problem {
  std::int64_t n = 0, logits = 0;
  MixingSettings settings = {};

  std::int64_t entries() const { return n * n; }
};

/// A mixing and its vjp for several matrices at once, one per lane of the best instruction set's vectors: entry e of
/// all matrices is the vector at e * lanes, as is logit e. Callers pass workspaces, and no memory overlaps.
template <class T>
struct Kernels {
  /// h [n n] of logits [m].
  void (*forward)(const Problem&, const T* logits, T* h, T* workspace);
  /// dlogits [m] from the cotangent dh [n n] of the result h.
  void (*vjp)(const Problem&, const T* logits, const T* h, const T* dh, T* dlogits, T* workspace);
  /// The number of vectors of workspace that either needs.
  std::int64_t (*workspace)(const Problem&);
};

}  // namespace braid::mhc::mixings

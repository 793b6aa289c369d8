#pragma once
#include <braid/core/kernels/tables.h>
#include <braid/mhc/mixing_settings.h>

namespace braid::mhc::mixings {

/// Matrices [n, n] that a mixing makes of logits [m].
struct Problem {
  std::int64_t n = 0, logits = 0;
  MixingSettings settings = {};

  std::int64_t entries() const { return n * n; }
};

/// A mixing and its vjp for as many matrices at once as a vector of the best instruction set has lanes: entry e of all
/// of them is the vector at e * lanes, as is logit e. Workspaces are given, and no memory overlaps.
template <class T>
struct Kernels {
  /// h [n n] of logits [m].
  void (*forward)(const Problem&, const T* logits, T* h, T* workspace);
  /// dlogits [m] from the cotangent dh [n n] of the result h.
  void (*vjp)(const Problem&, const T* logits, const T* h, const T* dh, T* dlogits, T* workspace);
  /// How many vectors of workspace either needs.
  std::int64_t (*workspace)(const Problem&);
};

}  // namespace braid::mhc::mixings

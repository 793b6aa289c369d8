#pragma once
#include <span>
#include <string_view>
#include <vector>

#include <braid/core/kernels/tables.h>
#include <braid/mhc/mixings/mixing.h>

namespace braid::mhc::mixings {

// Shared by several mixings.

/// [.., n n] -> [.., n, n]
Var square(const Var& logits, std::int64_t n);
/// A logit of a matrix [n, n]: 4 on the diagonal, else 0.
double diagonal_logit(std::int64_t n, std::int64_t k);
/// Cayley's rotation `(I - A)(I + A)^-1` of the skew A [size, size] whose entries above the diagonal are the logits,
/// row by row: [.., size (size - 1) / 2] -> [.., size, size]
Var cayley_rotation(const Var& logits, std::int64_t size);

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

/// One mixing, defined in one file; list.cpp names all of them.
struct Family {
  std::string_view name;
  MixingTraits (*traits)(const MixingSettings&);
  std::string_view sizes = "n >= 1";                                   ///< the supported n in words
  bool (*exists)(std::int64_t n) = [](std::int64_t) { return true; };  ///< whether it supports n >= 1
  std::int64_t (*logits)(std::int64_t n, const MixingSettings&);
  /// The k-th logit of the identity, or of the nearest matrix; 0 unless given.
  double (*identity)(std::int64_t n, std::int64_t k) = [](std::int64_t, std::int64_t) { return 0.0; };
  std::vector<double> (*start)(const Mixing&) = nullptr;  ///< logits at the start of training; null: `identity`
  Var (*composed)(const Var& logits, const Mixing&);      ///< [.., m] -> [.., n, n], the composed form
  braid::kernels::Tables<Kernels> (*kernels)();
};

/// A mixing of contiguous logits [.., m] on all threads, through the mixing's kernels for one vector of matrices.
template <class T>
struct BatchKernels {
  void (*forward)(const Mixing&, const Tensor& logits, Tensor& h);
  void (*vjp)(const Mixing&, const Tensor& logits, const Tensor& h, const Tensor& dh, Tensor& dlogits);
};

/// Every mixing, in the order of help texts.
std::span<const Family* const> families();

}  // namespace braid::mhc::mixings

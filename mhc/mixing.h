#pragma once
#include <string_view>
#include <vector>

#include <braid/autograd/tape.h>
#include <braid/mhc/mixing_settings.h>
#include <braid/mhc/path.h>

namespace braid::mhc {

namespace mixings {
struct Family;
}

/// What holds for every matrix of a mixing, to rounding.
struct MixingTraits {
  bool rows = false;        ///< rows sum to 1: equal streams stay equal
  bool columns = false;     ///< columns sum to 1: the mean of the streams stays
  bool orthogonal = false;  ///< H H^T = 1: norms stay
  bool negative = false;    ///< entries may be negative
};

/// A map from m logits to the matrix H_res [n, n] that mixes n streams, with its vjp: Sinkhorn-Knopp or what papers put
/// in its place. docs/mixings.md compares them, mhc/mixings/ has one file each, with formula and source.
///
///     Mixing mixing("cayley", 4);
///     Var h_res = mixing(logits);  // [.., mixing.logits()] -> [.., 4, 4]
class Mixing {
 public:
  /// Throws ValueError when there is no mixing of that name, or none for n, or a setting is out of range.
  Mixing(std::string_view name, std::int64_t n, const MixingSettings& settings = {});

  std::string_view name() const;         ///< as it was made by
  MixingTraits traits() const;           ///< what holds for its matrices
  std::int64_t n() const { return n_; }  ///< rows and columns of a matrix
  /// How many logits a matrix is made of; may be 0.
  std::int64_t logits() const { return logits_; }
  const MixingSettings& settings() const { return settings_; }  ///< as they were given

  /// logits [.., m] -> [.., n, n]. The reference path is composed of other ops, the fused one is a kernel with a
  /// hand-written vjp. Throws ShapeError on another last axis, DTypeError for i32.
  Var operator()(const Var& logits, Path path = default_path()) const;

  /// Logits [m] (f64) of the identity, or of the matrix that comes as close as training can still leave.
  Tensor identity() const;
  /// Logits [m] (f64) to start training from: identity(), unless the gradient is zero there.
  Tensor start() const;

  /// For the library alone.
  const mixings::Family& family() const { return *family_; }

 private:
  const mixings::Family* family_;
  std::int64_t n_, logits_;
  MixingSettings settings_;
};

/// All names.
std::vector<std::string_view> mixing_names();
/// Of those that are there for n streams.
std::vector<std::string_view> mixing_names(std::int64_t n);

}  // namespace braid::mhc

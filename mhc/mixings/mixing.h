#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include <braid/autograd/tape.h>
#include <braid/mhc/mixings/mixing_settings.h>

namespace braid::mhc {

namespace mixings {
struct Family;
}

/// Properties of every matrix of a mixing, to rounding.
struct MixingTraits {
  bool rows = false;        ///< rows sum to 1: equal streams stay equal
  bool columns = false;     ///< columns sum to 1: the mean of the streams stays
  bool orthogonal = false;  ///< H H^T = 1: norms stay
  bool negative = false;    ///< entries may be negative
};

/// A differentiable map from m logits to the matrix H_res [n, n] that mixes n streams: Sinkhorn-Knopp or one of the
/// published alternatives: see "Mixings" in the manual. mhc/mixings/ has one file each, with formula and source.
///
///     Mixing mixing("cayley", 4);
///     Var h_res = mixing(logits);  // [.., mixing.logits()] -> [.., 4, 4]
class Mixing {
 public:
  /// Throws ValueError when no mixing has that name, when it does not support n, or when a setting is out of range.
  Mixing(std::string_view name, std::int64_t n, const MixingSettings& settings = {});

  std::string_view name() const;                                 ///< the name it was constructed with
  MixingTraits traits() const;                                   ///< properties of its matrices
  std::int64_t n() const { return n_; }                          ///< rows and columns of a matrix
  std::int64_t logits() const { return logits_; }                ///< logits per matrix, m; may be 0
  const MixingSettings& settings() const& { return settings_; }  ///< the settings it was constructed with
  MixingSettings settings() && { return settings_; }             ///< of a temporary: a copy

  /// logits [.., m] -> [.., n, n], by a kernel with a hand-written vjp. Throws ShapeError on another last axis,
  /// DTypeError unless f32 or f64.
  Var operator()(const Var& logits) const;

  /// Logits [m] (f64) of the identity, or of the nearest matrix from which training can still move.
  Tensor identity() const;
  /// Logits [m] (f64) to start training from: identity(), unless the gradient is zero there.
  Tensor start() const;

  /// For use by the library only.
  const mixings::Family& family() const { return *family_; }

 private:
  const mixings::Family* family_;
  std::int64_t n_, logits_;
  MixingSettings settings_;
};

/// The names of all mixings, or of those that support n streams.
std::vector<std::string_view> mixing_names(std::optional<std::int64_t> n = {});

}  // namespace braid::mhc

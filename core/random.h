#pragma once
#include <cstdint>

#include <braid/core/tensor.h>

namespace braid {

/// A counter-based random number generator (Philox4x32-10, SC 2011). A value: a copy repeats the same numbers.
/// Each draw depends on the key and on the number of draws before, never on threads.
class Rng {
 public:
  explicit Rng(std::uint64_t seed = 0) : Rng(seed, 0) {}
  /// Restores a generator from its key() and draws().
  Rng(std::uint64_t key, std::uint64_t draws) : key_(key), draws_(draws) {}

  /// An independent generator; counts as a draw of this one.
  Rng split();
  /// A number in [0, 2^64).
  std::uint64_t bits();
  /// An integer in [0, n). Throws ValueError unless n > 0.
  std::int64_t below(std::int64_t n);
  /// A number in [0, 1).
  double uniform();

  std::uint64_t key() const { return key_; }      ///< the seed, or a number drawn by split()
  std::uint64_t draws() const { return draws_; }  ///< the number of draws so far

 private:
  std::uint64_t key_, draws_;
};

/// Uniform numbers in [0, 1). Throws DTypeError unless f32 or f64.
Tensor rand(const Shape& shape, Rng& rng, DType dtype = DType::f32);
/// Elements [first, first + n) of the tensor that `rand` would draw from a copy of this rng. T is float or double.
template <class T>
void rand_elements(const Rng& rng, std::int64_t first, std::int64_t n, T* out);
/// Standard normal numbers (Box-Muller). Throws DTypeError unless f32 or f64.
Tensor randn(const Shape& shape, Rng& rng, DType dtype = DType::f32);
/// Uniform i32 integers in [low, high). Throws ValueError unless low < high and both fit i32.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Rng& rng);
template <class Low, class High>
  requires(std::floating_point<Low> || std::floating_point<High>)
Tensor randint(Low low, High high, const Shape& shape, Rng& rng) = delete;
/// 0, 1, ..., n - 1 in random order, i32 [n]; counts as one draw. Fisher-Yates: every order is equally likely. Throws
/// ValueError unless n is in [0, 2^31].
Tensor randperm(std::int64_t n, Rng& rng);

}  // namespace braid

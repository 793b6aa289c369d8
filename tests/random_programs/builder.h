#pragma once
#include <tests/random_programs/program.h>

namespace braid::programs {

using Fits = std::function<bool(const Shape&)>;
bool anything(const Shape& shape);

/// Draws a program value by value. It runs each on its way, so that operands can be chosen by what is in them, and
/// takes none back that is too large, infinite or NaN.
class Builder {
 public:
  Builder(std::span<const Op> ops, Rng& rng);

  Rng& rng() { return rng_; }
  Shape shape(int value) const { return tensor(value).shape(); }

  /// A value of a shape that fits, rather one that nothing is made of yet; kNone when there is none.
  int any(const Fits& fits = anything);
  /// A value of that shape: one that is there, a new input, or elements of another value.
  int of_shape(const Shape& shape);
  /// x itself, or a value made of it, that is in [-limit, limit], at least 0.1, or at least 0.1 away from 0.
  int bounded(int x, double limit);
  int positive(int x);
  int away_from_zero(int x);

  /// Adds a call of `op`; false, and nothing is added, where that is not possible.
  bool call(const Op& op);

  const Program& program() const { return program_; }

 private:
  const Tensor& tensor(int value) const { return tensors_[static_cast<std::size_t>(value)]; }
  Shape random_shape();
  bool has_room(const Shape& input) const;
  int input(const Shape& shape);
  int gathered(const Shape& shape);
  int add(const Op& op, std::vector<int> operands, Settings settings = {});
  int add(const char* op, int x, Settings settings = {});

  std::span<const Op> ops_;
  Rng& rng_;
  Program program_;
  std::vector<Tensor> tensors_;  // what the values are
};

/// The program of an index: it depends on `ops`, `seed` and `index` alone.
Program random_program(std::span<const Op> ops, std::uint64_t seed, std::uint64_t index);

}  // namespace braid::programs

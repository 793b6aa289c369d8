#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid::planted {

/// One run of an op's vjp.
struct Call {
  std::vector<Tensor> inputs, outputs, dys;  // undefined cotangents are zero
  std::function<std::vector<Tensor>(std::vector<Tensor> dys)> vjp;
};

/// What the vjp gives in its place.
using WrongVjp = std::function<std::vector<Tensor>(const Call& call)>;
/// What a rule gives in place of the right one.
using WrongRule = std::function<std::vector<Var>(const Applied& op, const Rule& right)>;

/// A mistake in the vjp of one op, or in its rule.
struct Error {
  std::string op, words;
  WrongVjp vjp = {};
  WrongRule rule = {};
};

/// While it lives, one call of an op in every evaluation has an error: of those on a tape that bear the op's name, the
/// one with this index. Planting again inside is not possible.
class Planting {
 public:
  Planting(const Error& error, std::size_t occurrence);
  ~Planting();
  Planting(const Planting&) = delete;
  Planting& operator=(const Planting&) = delete;

  /// Runs an evaluation. What is recorded outside of it, by vjps and rules, does not count.
  template <class F>
  auto evaluate(F f) {
    ops_ = occurrences_ = place_ = 0;
    counts_ = true;
    auto result = f();
    counts_ = false;
    return result;
  }

  /// Of the last evaluation on a tape: how many ops, how many of that name, and the number of the planted one.
  std::size_t ops() const { return ops_; }
  std::size_t occurrences() const { return occurrences_; }
  std::size_t place() const { return place_; }
  /// How many evaluations were on a tape.
  int evaluations() const { return evaluations_; }

  /// What `record` makes of a vjp and a rule.
  void plant(const char* op, std::span<const Var> inputs, const std::vector<Tensor>& outputs, Vjp& vjp, Rule& rule);

 private:
  const Error& error_;
  std::size_t occurrence_;
  std::size_t ops_ = 0, occurrences_ = 0, place_ = 0;
  int evaluations_ = 0;
  bool counts_ = false;
};

}  // namespace braid::planted

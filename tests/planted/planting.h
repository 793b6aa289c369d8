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

/// While it lives, one call of an op in every evaluation has a wrong vjp: of those on a tape that bear the op's name,
/// the one with this index. Planting again inside is not possible.
class Planting {
 public:
  Planting(std::string op, std::size_t occurrence, WrongVjp wrong);
  ~Planting();
  Planting(const Planting&) = delete;
  Planting& operator=(const Planting&) = delete;

  /// Before each evaluation.
  void restart();

  /// Of the last evaluation on a tape: how many ops, how many of that name, and the number of the planted one.
  std::size_t ops() const { return ops_; }
  std::size_t occurrences() const { return occurrences_; }
  std::size_t place() const { return place_; }
  /// How many evaluations were on a tape.
  int evaluations() const { return evaluations_; }

  /// What `record` makes of a vjp.
  Vjp plant(const char* op, std::span<const Var> inputs, const std::vector<Tensor>& outputs, Vjp vjp);

 private:
  std::vector<Tensor> run(Call call);

  std::string op_;
  std::size_t occurrence_;
  WrongVjp wrong_;
  std::size_t ops_ = 0, occurrences_ = 0, place_ = 0;
  int evaluations_ = 0;
  bool running_ = false;  // a wrong vjp, whose own ops do not count
};

}  // namespace braid::planted

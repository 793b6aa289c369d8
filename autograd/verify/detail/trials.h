#pragma once
#include <map>
#include <ranges>
#include <set>
#include <vector>

#include <braid/autograd/derivative.h>
#include <braid/autograd/detail/recording.h>
#include <braid/autograd/verify/detail/lines.h>
#include <braid/core/random.h>

namespace braid::detail {

using Directions = std::map<ValueId, Tensor>;

/// A comparison of an op's vjp with its derivative along the directions of some of its inputs.
struct Trial {
  std::size_t op;
  std::vector<std::size_t> inputs;
};

struct Outcome {
  double analytic;
  Derivative numeric;
  Verdict verdict;
};

/// By op, a constant input that changed with the moved values: its gradient is lost.
using Leaks = std::map<std::size_t, std::size_t>;

/// An evaluation of f with its gradient, and trials of its ops.
class Trials {
 public:
  /// `amplification`: of rounding errors, as gradcheck measured them.
  Trials(const Subject& subject, const Tensor& dy, double amplification, bool opens_checkpoints);

  const Recording& base() const { return base_; }
  /// All trials, in rounds of those that do not disturb each other: where a cotangent is deferred, the effect of an op
  /// shows in the next op, whose own inputs must not move then.
  std::vector<std::vector<Trial>> rounds() const;
  /// Random directions for the inputs of trials.
  Directions directions_of(const std::vector<Trial>& trials);
  /// Adds directions for all other values: those without a vjp may still move constants.
  void move_all_else(Directions& directions);

  std::vector<Outcome> run(const std::vector<Trial>& trials, const Directions& directions, double fineness = 1);
  bool is_wrong(const Trial& trial, const Directions& directions) {
    return run({trial}, directions).front().verdict == Verdict::wrong;
  }
  bool is_wrong_in_f(std::size_t op);
  /// The constants that moved in any run.
  const Leaks& leaks() const { return leaks_; }

 private:
  class Replay;
  struct Step;
  struct Course;

  /// The ops that defer the cotangent of a result of this one, with the result.
  auto writers_of(const Recording::Op& op) const {
    return std::ranges::subrange(writers_.lower_bound(op.output(0)),
                                 writers_.lower_bound(op.output(op.results.size())));
  }
  std::vector<std::size_t> inputs_of(const Recording::Op& op, bool deferred) const;
  std::set<ValueId> flowing(const std::vector<Trial>& trials) const;

  const Subject& subject_;
  const double amplification_;
  Recording base_;
  Rng rng_ = Rng(subject_.options.seed + 1).split();
  std::multimap<ValueId, std::size_t> writers_;  // the ops that defer the cotangent of a value
  Leaks leaks_;
};

}  // namespace braid::detail

#pragma once
#include <map>
#include <set>
#include <vector>

#include <braid/autograd/derivative.h>
#include <braid/autograd/detail/recording.h>
#include <braid/autograd/verify/detail/blame.h>
#include <braid/autograd/verify/detail/replay.h>
#include <braid/core/random.h>

namespace braid::detail {

using Directions = std::map<ValueId, Tensor>;

/// Compares an op's vjp with its derivative along the directions of some of its inputs.
struct Trial {
  std::size_t op;
  std::vector<std::size_t> inputs;
};

struct Outcome {
  double analytic;
  Derivative numeric;
  Verdict verdict;
};

/// An evaluation of f with its gradient, and trials of its ops.
class Trials {
 public:
  Trials(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy, const BlameOptions& options,
         bool opens_checkpoints);

  const Recording& base() const { return base_; }
  /// Whether the output is on the tape.
  bool reached() const { return reached_; }

  /// All trials, in rounds of those that do not disturb each other: where a cotangent is deferred, what an op computes
  /// shows in the op behind it, whose own inputs then have to rest.
  std::vector<std::vector<Trial>> rounds() const;
  /// Random directions for the inputs of trials.
  Directions directions_of(const std::vector<Trial>& trials);
  /// And for all other values: those that no vjp answers for may still move constants.
  void move_all_else(Directions& directions);

  std::vector<Outcome> run(const std::vector<Trial>& trials, const Directions& directions, double fineness = 1);
  bool is_wrong(const Trial& trial, const Directions& directions) {
    return run({trial}, directions).front().verdict == Verdict::wrong;
  }
  /// Constants that moved in any run.
  const std::vector<Replay::Leak>& leaks() const { return leaks_; }

 private:
  struct Course;

  bool defers(ValueId value) const { return writers_.contains(value); }
  std::vector<std::size_t> inputs_of(const Recording::Op& op, bool deferred) const;
  void rest_writers_of(const Recording::Op& op, Directions& directions) const;
  std::set<ValueId> flowing(const std::vector<Trial>& trials) const;
  Course start(const Trial& trial, const Directions& directions) const;
  void follow(const Trial& trial, Course& course, const Replay& above, const Replay& below, double step) const;
  Outcome finish(const Trial& trial, const Course& course) const;

  const GradcheckFunction& f_;
  const std::vector<Tensor>& inputs_;
  BlameOptions options_;
  Recording base_;
  Rng rng_;
  bool reached_ = false;
  std::map<ValueId, std::vector<std::size_t>> writers_;  // the ops that return a deferred cotangent of a value
  std::vector<Replay::Leak> leaks_;
};

}  // namespace braid::detail

#pragma once
#include <map>
#include <set>
#include <vector>

#include <braid/autograd/detail/recording.h>
#include <braid/autograd/verify/verdict.h>

namespace braid::detail {

/// Runs a function again with every op isolated from the others: each gets the values of the recording, some of them
/// moved, and its results are kept.
class Replay : public Probe {
 public:
  /// `directions`: of the values that move. `flowing`: the values that later ops get as computed.
  Replay(const Recording& base, const std::map<ValueId, Tensor>& directions, const std::set<ValueId>& flowing)
      : base_(base), directions_(directions), flowing_(flowing) {}

  /// Evaluates f with each value moved by t * direction. Throws Error when f records other ops than before.
  void run(const GradcheckFunction& f, const std::vector<Tensor>& inputs, double t);

  const Tensor& computed(ValueId value) const { return computed_[value]; }

  /// A constant input of an op that changed with the moved values: its gradient is lost.
  struct Leak {
    std::size_t op, input;
  };
  const std::vector<Leak>& leaks() const { return leaks_; }

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override;
  bool opens_checkpoints() const override { return base_.opens_checkpoints(); }

 private:
  const Recording& base_;
  const std::map<ValueId, Tensor>& directions_;
  const std::set<ValueId>& flowing_;
  double t_ = 0;
  std::vector<Tensor> computed_;
  std::vector<Leak> leaks_;
};

}  // namespace braid::detail

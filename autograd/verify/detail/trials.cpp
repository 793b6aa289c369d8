#include <braid/autograd/verify/detail/trials.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/verify/detail/differences.h>

namespace braid::detail {

/// A run of f with every op isolated from the others: each gets the values of the recording, some of them moved, and
/// its results are kept.
class Trials::Replay : public Probe {
 public:
  /// Moves each value by t * direction. `flowing`: those that later ops get as computed. Throws Error for other ops.
  Replay(const Trials& trials, const Directions& directions, const std::set<ValueId>& flowing, double t)
      : base_(trials.base_), directions_(directions), flowing_(flowing), t_(t) {
    Tape tape(this);
    std::vector<Var> watched;
    for (const Tensor& input : trials.subject_.inputs) watched.push_back(tape.watch(input));
    trials.subject_.f(watched);
    check<Error>(computed_.size() == base_.makers.size(), "f recorded {} values at first but now {}",
                 base_.makers.size(), computed_.size());
  }

  const Tensor& computed(ValueId value) const { return computed_[value]; }
  const Leaks& leaks() const { return leaks_; }

  void recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) override {
    const bool known = op.index < base_.ops.size() && std::string_view(base_.ops[op.index].name) == op.name &&
                       base_.ops[op.index].results.size() == outputs.size();
    check<Error>(known, "f records other ops when its values change, first '{}' (#{})", op.name,
                 base_.number(op.index));
    const Recording::Op& before = base_.ops[op.index];
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!inputs[i].requires_grad() && inputs[i].value().defined() && before.constants[i].defined() &&
          !identical(inputs[i].value(), before.constants[i]))
        leaks_.emplace(op.index, i);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId value = before.output(i);
      computed_.push_back(outputs[i]);
      if (flowing_.contains(value)) continue;
      const auto direction = directions_.find(value);
      outputs[i] = direction == directions_.end() ? before.results[i] : moved(before.results[i], direction->second, t_);
      if (inputs.empty()) computed_.back() = outputs[i];  // an input of f
    }
  }

  bool opens_checkpoints() const override { return base_.opens_checkpoints(); }

 private:
  const Recording& base_;
  const Directions& directions_;
  const std::set<ValueId>& flowing_;
  const double t_;
  std::vector<Tensor> computed_;
  Leaks leaks_;
};

/// Two runs, in which values move by a step up and down.
struct Trials::Step {
  const Trials& trials;
  const double size;
  const Replay above, below;

  /// Adds the moves of <dy, value>.
  void add_to(Movement& movement, const Tensor& dy, ValueId value) const {
    if (dy.defined())
      movement.add(dy, above.computed(value), trials.base_.value(value), below.computed(value), Tensor(),
                   trials.amplification_);
  }
};

/// What runs have shown of one trial.
struct Trials::Course {
  const Trials& trials;
  const Trial& trial;
  const Recording::Op& op = trials.base_.ops[trial.op];
  InnerProduct analytic;
  Extrapolation numeric, deferred;

  Course(const Trials& trials, const Trial& trial, const Directions& directions) : trials(trials), trial(trial) {
    for (const std::size_t input : trial.inputs) {
      const auto direction = directions.find(*op.inputs[input]);
      if (direction != directions.end() && !(op.deferral && op.deferral->input == input))
        analytic.add(op.dxs[input], direction->second);
    }
  }

  double floor() const { return 1e-3 * analytic.size; }

  /// Adds one step of <dys, outputs>. A deferred cotangent belongs to the output of the op that deferred it.
  void add(const Step& step) {
    const auto add_deferred = [&](Movement& movement, const Recording::Op& from) {
      step.add_to(movement, from.dxs[from.deferral->input], from.output(from.deferral->output));
    };
    Movement moves;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const ValueId value = op.output(i);
      if (!trials.writers_.contains(value)) step.add_to(moves, op.dys[i], value);
      for (auto [writer, end] = trials.writers_.equal_range(value); writer != end; ++writer)
        if (const Recording::Op& before = trials.base_.ops[writer->second]; !before.dxs.empty())
          add_deferred(moves, before);
    }
    numeric.add(step.size, moves.moves(step.size, 1));
    if (!op.deferral || trial.inputs.front() != op.deferral->input) return;
    Movement deferred_moves;
    add_deferred(deferred_moves, op);
    deferred.add(step.size, deferred_moves.moves(step.size, 1));
  }

  Outcome outcome() const {
    const Derivative best = numeric.best(), later = deferred.best();
    const double left = std::isfinite(later.value) ? later.value : 0, value = analytic.value + left;
    const double tolerance = trials.subject_.options.tolerance;
    const Verdict verdict = judge(value, best, std::max(floor(), 1e-3 * std::abs(left)), tolerance);
    const double size = InnerProduct(op.dys, op.results).size;
    const bool zero = std::abs(value) + std::abs(best.value) <= 1e-15 * size;  // up to rounding
    return {value, best, zero ? Verdict::right : verdict};
  }
};

Trials::Trials(const Subject& subject, const Tensor& dy, double amplification, bool opens_checkpoints)
    : subject_(subject), amplification_(amplification), base_(opens_checkpoints) {
  gradients_at(subject.f, subject.inputs, dy, &base_);
  for (const Recording::Op& op : base_.ops)
    if (op.deferral && op.inputs[op.deferral->input]) writers_.emplace(*op.inputs[op.deferral->input], op.index);
}

/// The inputs on the tape whose cotangents the op's own vjp computes, or those that it defers to the op before.
std::vector<std::size_t> Trials::inputs_of(const Recording::Op& op, bool deferred) const {
  std::vector<std::size_t> list;
  if (op.dxs.empty() || std::ranges::any_of(op.results, is_coarse)) return list;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i] && !is_coarse(base_.value(*op.inputs[i])) && (op.deferral && op.deferral->input == i) == deferred)
      list.push_back(i);
  return list;
}

std::vector<std::vector<Trial>> Trials::rounds() const {
  std::vector<std::vector<Trial>> rounds(5);
  std::map<std::size_t, std::size_t> parity;
  for (const Recording::Op& op : base_.ops) {
    if (op.inputs.empty()) continue;
    if (op.deferral)
      if (const auto& from = op.inputs[op.deferral->input]) parity[op.index] = 1 - parity[base_.maker(*from).index];
    const bool chained = op.deferral || !writers_of(op).empty();
    if (const auto own = inputs_of(op, false); !own.empty())
      rounds[chained ? 1 + parity[op.index] : 0].push_back({op.index, own});
    if (const auto left = inputs_of(op, true); !left.empty()) rounds[3 + parity[op.index]].push_back({op.index, left});
  }
  return rounds;
}

Directions Trials::directions_of(const std::vector<Trial>& trials) {
  Directions directions;
  for (const Trial& trial : trials)
    for (const std::size_t input : trial.inputs) {
      const ValueId value = *base_.ops[trial.op].inputs[input];
      if (!directions.contains(value)) directions[value] = random_direction(base_.value(value), rng_);
    }
  // The other inputs of ops that defer a cotangent to these stay in place.
  for (const Trial& trial : trials)
    for (const auto& [value, writer] : writers_of(base_.ops[trial.op]))
      for (const auto& input : base_.ops[writer].inputs)
        if (input) directions.erase(*input);
  return directions;
}

/// The results that later ops get as computed: those whose cotangent is deferred, which the next op needs, and those
/// without a cotangent, from which the forward pass of an op may compute what it records.
std::set<ValueId> Trials::flowing(const std::vector<Trial>& trials) const {
  std::set<ValueId> values;
  for (const Recording::Op& op : base_.ops)
    for (std::size_t i = 0; op.dys.empty() && !op.inputs.empty() && i < op.results.size(); ++i)
      values.insert(op.output(i));
  for (const Trial& trial : trials) {
    const Recording::Op& op = base_.ops[trial.op];
    for (std::size_t i = 0; i < op.results.size(); ++i)
      if (writers_.contains(op.output(i)) || !op.dys[i].defined()) values.insert(op.output(i));
  }
  return values;
}

std::vector<Outcome> Trials::run(const std::vector<Trial>& trials, const Directions& directions, double fineness) {
  std::vector<Course> courses;
  for (const Trial& trial : trials) courses.emplace_back(*this, trial, directions);
  const std::set<ValueId> flow = flowing(trials);
  descend_together(fineness, courses, subject_.options.tolerance, [&](double size) {
    const Step step{*this, size, {*this, directions, flow, size}, {*this, directions, flow, -size}};
    leaks_.insert(step.above.leaks().begin(), step.above.leaks().end());
    for (Course& course : courses) course.add(step);
  });
  std::vector<Outcome> outcomes;
  for (const Course& course : courses) outcomes.push_back(course.outcome());
  return outcomes;
}

/// Whether the vjp of an op is wrong as f runs, with nothing isolated: its outputs move otherwise than its inputs and
/// their cotangents say. One that reads values besides its inputs that are made from them is right.
bool Trials::is_wrong_in_f(std::size_t index) {
  const Recording::Op& op = base_.ops[index];
  if (op.deferral || !writers_of(op).empty()) return true;  // others have a part of it
  Directions directions;
  std::set<ValueId> flow;
  for (ValueId value = 0; value < base_.makers.size(); ++value)
    if (!base_.maker(value).inputs.empty())
      flow.insert(value);
    else
      directions[value] = random_direction(base_.value(value), rng_);
  double size = 0;
  Extrapolation difference;
  const auto add = [&](double distance) -> const Extrapolation& {
    const Step step{*this, distance, {*this, directions, flow, distance}, {*this, directions, flow, -distance}};
    Movement movement;
    for (std::size_t i = 0; i < op.results.size(); ++i) step.add_to(movement, op.dys[i], op.output(i));
    size = std::abs(movement.up + movement.down) / (2 * distance);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] && op.dxs[i].defined()) step.add_to(movement, Tensor(-op.dxs[i]), *op.inputs[i]);
    difference.add(distance, movement.moves(distance, 1));
    return difference;
  };
  const auto known = [&](const Derivative& d) { return d.error <= 0.1 * subject_.options.tolerance * size; };
  const Derivative missing = descend(1, add, known);
  return !(std::abs(missing.value) + missing.error <= subject_.options.tolerance * size);
}

void Trials::move_all_else(Directions& directions) {
  for (ValueId value = 0; value < base_.makers.size(); ++value)
    if (const Tensor& x = base_.value(value); x.dtype() == DType::f64)
      directions.try_emplace(value, random_direction(x, rng_));
}

}  // namespace braid::detail

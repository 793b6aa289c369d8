#include <braid/autograd/detail/blame.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <braid/autograd/detail/differences.h>
#include <braid/autograd/detail/replay.h>
#include <braid/autograd/detail/verdict.h>

namespace braid::detail {
namespace {

using Directions = std::map<ValueId, Tensor>;

constexpr int kAttempts = 4;  // the errors of an op's elements may cancel along a direction

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

/// What an op does along the directions.
struct Course {
  double analytic = 0, norm = 0;
  Extrapolation numeric, deferred;

  double floor() const { return 1e-3 * norm; }
  bool settled(double tolerance) const {
    const Derivative d = numeric.best();
    return numeric.exhausted() || d.error <= 0.1 * tolerance * std::max(std::abs(d.value), floor());
  }
};

class Blame {
 public:
  Blame(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy, const BlameOptions& options,
        bool opens_checkpoints)
      : f_(f), inputs_(inputs), options_(options), base_(opens_checkpoints), rng_(Rng(options.seed + 1).split()) {
    Tape tape(&base_);
    std::vector<Var> watched;
    for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
    const Var y = f(watched);
    reached_ = y.requires_grad();
    tape.backward(y, dy);
    for (const Recording::Op& op : base_.ops)
      if (op.deferral && op.inputs[op.deferral->input]) writers_[*op.inputs[op.deferral->input]].push_back(op.index);
  }

  bool reached() const { return reached_; }
  /// The op nearest to the output whose vjp is wrong.
  std::optional<std::size_t> wrong_op();
  bool is_checkpoint(std::size_t op) const { return base_.ops[op].name == std::string_view("checkpoint"); }
  /// What is wrong with it.
  std::string accuse(std::size_t op);

 private:
  std::optional<std::size_t> wrong_op_along_directions();
  std::vector<std::vector<Trial>> rounds() const;
  bool defers(ValueId value) const { return writers_.contains(value); }
  std::vector<std::size_t> inputs_of(const Recording::Op& op, bool deferred) const;
  Directions directions_of(const std::vector<Trial>& trials);
  void rest_writers_of(const Recording::Op& op, Directions& directions) const;
  void move_all_else(Directions& directions);
  std::set<ValueId> flowing(const std::vector<Trial>& trials) const;
  std::string place_of(std::size_t op) const;
  std::string wrong_input(std::size_t op, std::size_t input);
  void follow(const Trial& trial, Course& course, const Replay& above, const Replay& below, double step) const;
  double rounding_of(const Trial& trial) const;
  std::vector<Outcome> run(const std::vector<Trial>& trials, const Directions& directions, double fineness = 1);
  bool is_wrong(const Trial& trial, const Directions& directions) {
    return run({trial}, directions).front().verdict == Verdict::wrong;
  }

  const GradcheckFunction& f_;
  const std::vector<Tensor>& inputs_;
  BlameOptions options_;
  Recording base_;
  Rng rng_;
  bool reached_ = false;
  std::map<ValueId, std::vector<std::size_t>>
      writers_;  // of a value whose cotangent is deferred: the ops that return it
  std::vector<Replay::Leak> leaks_;
};

/// The inputs on the tape that an op's own vjp answers for, or that it leaves to the op before.
std::vector<std::size_t> Blame::inputs_of(const Recording::Op& op, bool deferred) const {
  std::vector<std::size_t> list;
  const auto is_f64 = [](const Tensor& t) { return t.dtype() == DType::f64; };
  if (op.dxs.empty() || !std::ranges::all_of(op.results, is_f64)) return list;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i] && is_f64(base_.value(*op.inputs[i])) && (op.deferral && op.deferral->input == i) == deferred)
      list.push_back(i);
  return list;
}

/// All trials, in rounds of those that do not disturb each other: where a cotangent is deferred, what an op computes
/// shows in the op behind it, whose own inputs then have to rest.
std::vector<std::vector<Trial>> Blame::rounds() const {
  std::vector<std::vector<Trial>> rounds(5);
  std::map<std::size_t, std::size_t> parity;
  for (const Recording::Op& op : base_.ops) {
    if (op.inputs.empty()) continue;
    bool chained = op.deferral.has_value();
    if (chained)
      if (const auto& from = op.inputs[op.deferral->input]) parity[op.index] = 1 - parity[base_.maker(*from).index];
    for (std::size_t i = 0; i < op.results.size(); ++i) chained |= defers(static_cast<ValueId>(op.first_output + i));
    if (const auto own = inputs_of(op, false); !own.empty())
      rounds[chained ? 1 + parity[op.index] : 0].push_back({op.index, own});
    if (const auto left = inputs_of(op, true); !left.empty()) rounds[3 + parity[op.index]].push_back({op.index, left});
  }
  return rounds;
}

Directions Blame::directions_of(const std::vector<Trial>& trials) {
  Directions directions;
  for (const Trial& trial : trials)
    for (const std::size_t input : trial.inputs) {
      const ValueId value = *base_.ops[trial.op].inputs[input];
      if (!directions.contains(value)) directions[value] = random_direction(base_.value(value), rng_);
    }
  for (const Trial& trial : trials) rest_writers_of(base_.ops[trial.op], directions);
  return directions;
}

/// The other inputs of ops that return a deferred cotangent of this one have to rest.
void Blame::rest_writers_of(const Recording::Op& op, Directions& directions) const {
  for (std::size_t i = 0; i < op.results.size(); ++i)
    if (const auto writers = writers_.find(static_cast<ValueId>(op.first_output + i)); writers != writers_.end())
      for (const std::size_t writer : writers->second)
        for (const auto& input : base_.ops[writer].inputs)
          if (input) directions.erase(*input);
}

/// Where a cotangent is deferred, the op behind needs what this one computes: that, and what has no cotangent.
std::set<ValueId> Blame::flowing(const std::vector<Trial>& trials) const {
  std::set<ValueId> values;
  for (const Trial& trial : trials) {
    const Recording::Op& op = base_.ops[trial.op];
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const auto value = static_cast<ValueId>(op.first_output + i);
      if (defers(value) || !op.dys[i].defined()) values.insert(value);
    }
  }
  return values;
}

/// Adds one step to what is known of an op: <dys, outputs>, where a deferred cotangent belongs to the output of the op
/// that returned it.
void Blame::follow(const Trial& trial, Course& course, const Replay& above, const Replay& below, double step) const {
  const auto add = [&](Movement& movement, const Tensor& dy, const Recording::Op& op, std::size_t output) {
    const auto value = static_cast<ValueId>(op.first_output + output);
    if (dy.defined())
      movement.add(dy, above.computed(value), op.results[output], below.computed(value), Tensor(),
                   options_.amplification);
  };
  const Recording::Op& op = base_.ops[trial.op];
  Movement numeric;
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    const auto writers = writers_.find(static_cast<ValueId>(op.first_output + i));
    if (writers == writers_.end()) {
      add(numeric, op.dys[i], op, i);
    } else {
      for (const std::size_t index : writers->second) {
        const Recording::Op& writer = base_.ops[index];
        if (!writer.dxs.empty()) add(numeric, writer.dxs[writer.deferral->input], writer, writer.deferral->output);
      }
    }
  }
  course.numeric.add(step, numeric.moves(step, 1));
  if (!op.deferral || trial.inputs.front() != op.deferral->input) return;
  Movement deferred;
  add(deferred, op.dxs[op.deferral->input], op, op.deferral->output);
  course.deferred.add(step, deferred.moves(step, 1));
}

/// What cannot be told from 0.
double Blame::rounding_of(const Trial& trial) const {
  const Recording::Op& op = base_.ops[trial.op];
  double size = 0;
  for (std::size_t i = 0; i < op.dys.size(); ++i) size = std::hypot(size, root_square_sum(op.dys[i], op.results[i]));
  return 1e-15 * size;
}

std::vector<Outcome> Blame::run(const std::vector<Trial>& trials, const Directions& directions, double fineness) {
  std::vector<Course> courses(trials.size());
  for (std::size_t t = 0; t < trials.size(); ++t) {
    const Recording::Op& op = base_.ops[trials[t].op];
    for (const std::size_t input : trials[t].inputs) {
      const auto direction = directions.find(*op.inputs[input]);
      if (direction == directions.end() || (op.deferral && op.deferral->input == input)) continue;
      courses[t].analytic += dot(op.dxs[input], direction->second);
      courses[t].norm = std::hypot(courses[t].norm, root_square_sum(op.dxs[input], direction->second));
    }
  }
  const std::set<ValueId> flow = flowing(trials);
  const auto settled = [&](const Course& c) { return c.settled(options_.tolerance); };
  const auto add = [&](double step) -> const Extrapolation& {
    Replay above(base_, directions, flow), below(base_, directions, flow);
    above.run(f_, inputs_, step);
    below.run(f_, inputs_, -step);
    leaks_.insert(leaks_.end(), above.leaks().begin(), above.leaks().end());
    for (std::size_t t = 0; t < trials.size(); ++t) follow(trials[t], courses[t], above, below, step);
    const auto slow = std::ranges::find_if_not(courses, settled);
    return (slow == courses.end() ? courses.front() : *slow).numeric;
  };
  if (!trials.empty()) descend(fineness, add, [&](const Derivative&) { return std::ranges::all_of(courses, settled); });
  std::vector<Outcome> outcomes;
  for (const Course& c : courses) {
    const Derivative numeric = c.numeric.best(), deferred = c.deferred.best();
    const double analytic = c.analytic + (std::isfinite(deferred.value) ? deferred.value : 0);
    const double floor = std::max(c.floor(), std::isfinite(deferred.value) ? 1e-3 * std::abs(deferred.value) : 0);
    Verdict verdict = judge(analytic, numeric, floor, options_.tolerance);
    if (std::abs(analytic) + std::abs(numeric.value) <= rounding_of(trials[outcomes.size()])) verdict = Verdict::right;
    outcomes.push_back({analytic, numeric, verdict});
  }
  return outcomes;
}

/// Values that no vjp answers for may still move constants.
void Blame::move_all_else(Directions& directions) {
  for (ValueId value = 0; value < base_.makers.size(); ++value)
    if (const Tensor& x = base_.value(value); x.dtype() == DType::f64)
      directions.try_emplace(value, random_direction(x, rng_));
}

std::optional<std::size_t> Blame::wrong_op_along_directions() {
  std::optional<std::size_t> last;
  bool first = true;
  for (const std::vector<Trial>& round : rounds()) {
    Directions directions = directions_of(round);
    if (first) move_all_else(directions);
    first = false;
    const std::vector<Outcome> outcomes = run(round, directions);
    std::vector<Trial> suspects;
    for (std::size_t i = 0; i < round.size(); ++i)
      if (outcomes[i].verdict == Verdict::wrong) suspects.push_back(round[i]);
    const std::vector<Outcome> again = run(suspects, directions, 1e-3);
    for (std::size_t i = 0; i < suspects.size(); ++i)
      if (again[i].verdict == Verdict::wrong) last = std::max(last.value_or(0), suspects[i].op);
  }
  return last;
}

std::optional<std::size_t> Blame::wrong_op() {
  std::optional<std::size_t> op;
  for (int attempt = 0; attempt < kAttempts && !op; ++attempt) op = wrong_op_along_directions();
  return op;
}

/// `op 'rms_norm' (#37 of 112)`
std::string Blame::place_of(std::size_t op) const {
  const auto is_op = [](const Recording::Op& o) { return !o.inputs.empty(); };
  const auto end = base_.ops.begin() + static_cast<std::ptrdiff_t>(op) + 1;
  return fmt::format("op '{}' (#{} of {})", base_.ops[op].name, std::count_if(base_.ops.begin(), end, is_op),
                     std::count_if(base_.ops.begin(), base_.ops.end(), is_op));
}

/// The element where the vjp is wrong for an input, in words; empty when it is right.
std::string Blame::wrong_input(std::size_t index, std::size_t input) {
  const Recording::Op& op = base_.ops[index];
  const ValueId value = *op.inputs[input];
  Trial trial{index, {}};
  for (std::size_t same = input; same < op.inputs.size(); ++same)
    if (op.inputs[same] == value) trial.inputs.push_back(same);
  const Directions directions = directions_of({trial});
  if (!is_wrong(trial, directions)) return "";
  const Tensor& x = base_.value(value);
  const Tensor direction = directions.at(value).contiguous();
  const std::int64_t element = bisect(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    return is_wrong(trial, {{value, only(direction, begin, end)}});
  });
  const Outcome outcome = run({trial}, {{value, only(direction, element, element + 1)}}).front();
  const double size = direction.data<double>()[element];
  return fmt::format("input {} {}, {}: analytic {:.10g}, numeric {:.10g}", input, x.shape(),
                     element_name(x.shape(), element), outcome.analytic / size, outcome.numeric.value / size);
}

std::string Blame::accuse(std::size_t index) {
  const Recording::Op& op = base_.ops[index];
  if (const auto leak = std::ranges::find(leaks_, index, &Replay::Leak::op); leak != leaks_.end())
    return fmt::format(
        "no vjp is wrong: a gradient is lost at {}, whose input {} {} is a constant but depends on variables",
        place_of(index), leak->input, op.constants[leak->input].shape());
  for (std::size_t k = 0; k < kAttempts * op.inputs.size(); ++k) {
    const std::size_t i = k % op.inputs.size();
    if (!op.inputs[i] || base_.value(*op.inputs[i]).dtype() != DType::f64) continue;
    if (const std::string words = wrong_input(index, i); !words.empty())
      return fmt::format("first wrong vjp: {}, {}", place_of(index), words);
  }
  return fmt::format("first wrong vjp: {}: its outputs depend on variables that are not among its inputs",
                     place_of(index));
}

}  // namespace

std::string blame(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy,
                  const BlameOptions& options) {
  Blame search(f, inputs, dy, options, /*opens_checkpoints=*/false);
  if (!search.reached()) return "no vjp is wrong: the output of f is not on the tape";
  const std::optional<std::size_t> op = search.wrong_op();
  if (!op) return "no vjp is wrong along random directions";
  if (search.is_checkpoint(*op)) {
    Blame inside(f, inputs, dy, options, /*opens_checkpoints=*/true);
    if (const auto inner = inside.wrong_op()) return inside.accuse(*inner);
  }
  return search.accuse(*op);
}

}  // namespace braid::detail

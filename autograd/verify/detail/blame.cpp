#include <braid/autograd/verify/detail/blame.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <braid/autograd/verify/detail/differences.h>

namespace braid::detail {
namespace {

constexpr int kAttempts = 4;  // the errors of an op's elements may cancel along a direction

/// The op nearest to the output whose vjp is wrong along random directions.
std::optional<std::size_t> wrong_op_along_directions(Trials& trials) {
  std::set<std::size_t> wrong;
  const std::vector<std::vector<Trial>> rounds = trials.rounds();
  for (const std::vector<Trial>& round : rounds) {
    Directions directions = trials.directions_of(round);
    if (&round == &rounds.front()) trials.move_all_else(directions);
    const std::vector<Outcome> outcomes = trials.run(round, directions);
    std::vector<Trial> suspects;
    for (std::size_t i = 0; i < round.size(); ++i)
      if (outcomes[i].verdict == Verdict::wrong) suspects.push_back(round[i]);
    const std::vector<Outcome> again = trials.run(suspects, directions, 1e-3);
    for (std::size_t i = 0; i < suspects.size(); ++i)
      if (again[i].verdict == Verdict::wrong) wrong.insert(suspects[i].op);
  }
  const auto last = std::find_if(wrong.rbegin(), wrong.rend(), [&](std::size_t op) {
    return trials.leaks().contains(op) || trials.is_wrong_in_f(op);
  });
  return last == wrong.rend() ? std::nullopt : std::optional(*last);
}

std::optional<std::size_t> wrong_op(Trials& trials) {
  std::optional<std::size_t> op;
  for (int attempt = 0; attempt < kAttempts && !op; ++attempt) op = wrong_op_along_directions(trials);
  return op;
}

/// Describes the element of an input where the vjp is wrong; empty when it is right.
std::string wrong_input(Trials& trials, std::size_t index, std::size_t input) {
  const Recording& base = trials.base();
  const Recording::Op& op = base.ops[index];
  const ValueId value = *op.inputs[input];
  Trial trial{index, {}};
  for (std::size_t same = input; same < op.inputs.size(); ++same)
    if (op.inputs[same] == value) trial.inputs.push_back(same);
  const Directions directions = trials.directions_of({trial});
  if (!trials.is_wrong(trial, directions)) return "";
  const Tensor& x = base.value(value);
  const Tensor direction = directions.at(value).contiguous();
  const std::int64_t element = bisect(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    return trials.is_wrong(trial, {{value, only(direction, begin, end)}});
  });
  const Outcome outcome = trials.run({trial}, {{value, only(direction, element, element + 1)}}).front();
  if (outcome.verdict != Verdict::wrong)  // the errors of several elements cancelled on the way
    return fmt::format("input {} {}", input, x.shape());
  const double size = direction.data<double>()[element], error = relative_error(outcome.analytic, outcome.numeric, 0);
  return formatted("input {} {}, {}: analytic {:.10g}, numeric {:.10g}, relative error {:.3g}", input, x.shape(),
                   element_name(x.shape(), element), outcome.analytic / size, outcome.numeric.value / size, error);
}

/// The sentence about a wrong op.
std::string accuse(Trials& trials, std::size_t index, const Subject& subject) {
  const Recording& base = trials.base();
  const Recording::Op& op = base.ops[index];
  const std::string place = place_of(base, index, subject);
  if (const auto leak = trials.leaks().find(index); leak != trials.leaks().end())
    return fmt::format(
        "no vjp is wrong: a gradient is lost at {}, whose input {} {} is a constant but depends on variables", place,
        leak->second, op.constants[leak->second].shape());
  for (std::size_t k = 0; k < kAttempts * op.inputs.size(); ++k) {
    const std::size_t i = k % op.inputs.size();
    if (!op.inputs[i] || base.value(*op.inputs[i]).dtype() != DType::f64) continue;
    if (const std::string words = wrong_input(trials, index, i); !words.empty())
      return fmt::format("first wrong vjp: {}, {}", place, words);
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i] && !op.dxs[i].defined())
      return fmt::format("first wrong vjp: {}, input {} {}: its vjp returned no cotangent", place, i,
                         base.value(*op.inputs[i]).shape());
  return fmt::format("first wrong vjp: {}: its outputs depend on variables that are not among its inputs", place);
}

}  // namespace

std::string place_of(const Recording& base, std::size_t op, const Subject& subject) {
  std::string place =
      fmt::format("op '{}' (#{} of {})", base.ops[op].name, base.number(op), base.number(base.ops.size() - 1));
  std::vector<std::string> names;
  std::size_t at = op + 1;
  while (names.empty() && at-- > 0)
    for (const auto& input : base.ops[at].inputs)  // f's inputs are recorded first
      if (input && *input < subject.names.size() && !subject.names[*input].starts_with("input "))
        names.push_back(subject.names[*input]);
  if (names.empty()) return place;
  return fmt::format("{} {}with {}", place, at < op ? "after one " : "", fmt::join(names, " and "));
}

Blame blame(const Subject& subject, const Tensor& dy, double amplification) try {
  Trials trials(subject, dy, amplification, /*opens_checkpoints=*/false);
  const auto is_reached = [](const Recording::Op& op) { return !op.dys.empty(); };
  if (std::ranges::none_of(trials.base().ops, is_reached))
    return {"no vjp is wrong: the output of f is not on the tape"};
  const std::optional<std::size_t> op = wrong_op(trials);
  if (!op) {
    for (const Recording::Op& f : trials.base().ops)
      if (const auto y = std::ranges::find_if(f.results, is_coarse); y != f.results.end())
        return {fmt::format("not every vjp can be compared to {:g}, since {} returns {}", subject.options.tolerance,
                            place_of(trials.base(), f.index, subject), name(y->dtype()))};
    return {.sentence = fmt::format("no vjp is seen to be wrong by more than {:g} along random directions",
                                    subject.options.tolerance),
            .all_right = true};
  }
  if (trials.base().ops[*op].name == std::string_view("checkpoint")) {
    Trials inside(subject, dy, amplification, /*opens_checkpoints=*/true);
    if (const auto inner = wrong_op(inside)) return {accuse(inside, *inner, subject), op};
  }
  return {accuse(trials, *op, subject), op};
} catch (const Error& error) {
  return {fmt::format("no vjp can be blamed: {}", error.what())};
}

}  // namespace braid::detail

#include <braid/nn/verify/verify.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include <fmt/ranges.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>
#include <braid/nn/verify/detail/mismatch.h>

namespace braid::nn {
namespace {

/// A sentence about a wrong result, empty for a right one, and its error.
std::pair<std::string, double> misfit(const std::string& key, const NamedTensors& results, const Tensor& expected,
                                      double tolerance) {
  const auto found = results.find(key);
  if (found == results.end()) return {fmt::format("'{}' was not computed", key), NAN};
  const Tensor& result = found->second;
  if (result.shape() != expected.shape())
    return {fmt::format("{} must have shape {} but has {}", key, expected.shape(), result.shape()), NAN};
  const double error = relative_error(result, expected);
  if (error <= tolerance) return {"", error};
  const bool cut = key.starts_with("grad.") && std::ranges::count(result.to_vector<double>(), 0.0) == result.numel();
  const char* hint = cut ? "; it is zero: is it detached, or passed as a mask, which gets no gradient?" : "";
  return {formatted("{} is off by {:.1e}, more than {:.0e}{}", key, error, tolerance, hint), error};
}

/// The cotangents by the names of their outputs: `cotangent` is that of y, `cotangent.y1` that of y1.
NamedTensors cotangents(const RecordedCase& recorded) {
  NamedTensors found = recorded.group("cotangent.");
  if (found.empty()) found["y"] = recorded.tensor("cotangent");
  return found;
}

/// What derivatives of second order say of a case with directions: `jvp.NAME` of each output that has a cotangent, and
/// `hvp.NAME` of each input and parameter, for the sum of the outputs times their cotangents.
void differentiate_twice(const RecordedCase& recorded, const detail::CaseCall& call, const CaseInputs& inputs,
                         NamedTensors& results) {
  std::vector<std::string> names;
  std::vector<Var> xs, directions;
  for (const auto& [name, direction] : recorded.group("direction.")) {
    names.push_back(name);
    xs.push_back(detach(inputs[name]));
    directions.push_back(direction);
  }
  std::map<std::string, Var> constants;
  for (const auto& [name, input] : inputs.all()) constants.emplace(name, detach(input));
  const auto outputs_at = [&](const std::vector<Var>& at) {
    std::map<std::string, Var> variables = constants;
    for (std::size_t i = 0; i < at.size(); ++i) variables[names[i]] = at[i];
    return call(inputs.with(std::move(variables)));
  };
  const auto along_cotangents = [&](const std::vector<Var>& at) {
    const detail::NamedVars outputs = outputs_at(at);
    Var total = zeros({}, inputs.dtype());
    for (const auto& [name, dy] : cotangents(recorded)) total = total + sum(outputs.at(name) * dy);
    return total;
  };
  const std::vector<Var> products = hvp(along_cotangents, xs, directions);
  for (std::size_t i = 0; i < names.size(); ++i) results["hvp." + names[i]] = products[i].value();
  for (const auto& [name, dy] : cotangents(recorded)) {
    const auto output = [&](const std::vector<Var>& at) { return outputs_at(at).at(name); };
    results["jvp." + name] = jvp(output, xs, directions).second.value();
  }
}

/// Runs the vjps, unless an output is missing or has another shape: then the message names that instead.
bool propagate(Tape& tape, const detail::NamedVars& outputs, const NamedTensors& cotangents) {
  std::vector<Var> ys;
  std::vector<Tensor> dys;
  for (const auto& [name, dy] : cotangents) {
    const auto found = outputs.find(name);
    if (found == outputs.end() || found->second.shape() != dy.shape()) return false;
    ys.push_back(found->second);
    dys.push_back(dy);
  }
  tape.backward(ys, dys);
  return true;
}

}  // namespace

Verification compare(const RecordedCase& recorded, const NamedTensors& results, double tolerance) {
  Verification verification{.tolerance = tolerance};
  const auto note = [&](const std::string& what) {
    if (verification.message.empty()) verification.message = what;
  };
  for (const auto& [key, result] : results)
    if (!recorded.tensors.contains(key)) note(fmt::format("the file must have '{}'", key));
  for (const char* prefix : {"out.", "grad.", "final.", "jvp.", "hvp."})
    for (const auto& [key, expected] : recorded.tensors) {
      if (!key.starts_with(prefix)) continue;
      const bool twice = key.starts_with("jvp.") || key.starts_with("hvp.");
      const auto [what, error] = misfit(key, results, expected, twice ? 10 * tolerance : tolerance);
      if (!what.empty()) note(what);
      verification.table.push_back({key, error, what.empty()});
      verification.worst = worse(verification.worst, error);
    }
  return verification;
}

std::string to_string(const Verification& verification) {
  std::size_t width = 0, agree = 0;
  for (const Comparison& c : verification.table) width = std::max(width, c.name.size());
  std::string text;
  for (const auto& [name, error, ok] : verification.table) {
    text += formatted("{:<{}}  {:>7.1e}{}\n", name, width, error, ok ? "" : "  differs");
    agree += ok;
  }
  text += fmt::format("{} of {} agree within {:.0e}\n", agree, verification.table.size(), verification.tolerance);
  return verification ? text : text + verification.message + "\n";
}

namespace detail {

Verification verify(const RecordedCase& recorded, const CaseCall& call, const VerifyOptions& options) {
  const RecordedCase converted = to_dtype(recorded, options.dtype);
  braid::detail::Recording recording(/*opens_checkpoints=*/true);
  Tape tape(recorded.parts.empty() ? nullptr : &recording);
  const CaseInputs inputs(converted, tape);
  const NamedVars outputs = call(inputs);
  NamedTensors results;
  for (const auto& [name, output] : outputs) results["out." + name] = output.value();
  if (propagate(tape, outputs, cotangents(converted))) {
    for (const auto& [name, input] : inputs.all())
      if (input.requires_grad()) results["grad." + name] = tape.gradient(input);
    if (!converted.group("direction.").empty()) differentiate_twice(converted, call, inputs, results);
  }
  const double tolerance = options.tolerance.value_or(options.dtype == DType::f64 ? 1e-10 : 2e-5);
  Verification verification = compare(converted, results, tolerance);
  const auto listed = [](const auto& named) { return fmt::format("{}", fmt::join(named | std::views::keys, ", ")); };
  if (const std::string got = listed(outputs), has = listed(converted.group("out.")); got != has) {
    verification.message = fmt::format("the call returned {} but the case has {}", got, has);
  } else if (!verification && !recorded.parts.empty()) {
    const auto agrees = [](const Comparison& c) { return c.ok || !c.name.starts_with("out."); };
    const bool outputs_agree = std::ranges::all_of(verification.table, agrees);
    verification.message += fmt::format("\n{}", first_mismatch(converted, Trace(recording), tolerance, outputs_agree));
  }
  return verification;
}

void check_parameters(const RecordedCase& recorded, const NamedTensors& parameters) {
  NamedTensors targets = parameters, given = recorded.group("param.");
  for (const std::string& buffer : recorded.buffers)
    if (!parameters.contains(buffer)) given.erase(buffer);
  std::vector<std::pair<std::string, Tensor*>> assigned;
  for (auto& [name, tensor] : targets) assigned.emplace_back(name, &tensor);
  assign_by_name("verify: the parameters of " + recorded.name, assigned, given);
}

NamedVars named_outputs(const std::vector<Var>& ys) {
  NamedVars outputs;
  for (std::size_t i = 0; i < ys.size(); ++i) outputs[fmt::format("y{}", i)] = ys[i];
  return outputs;
}

}  // namespace detail
}  // namespace braid::nn

// Plants errors in the vjps and the rules of braid's ops, one at a time, and lets gradcheck find them: with the op
// alone and in a transformer. Exit code 1 when one is missed or another op is blamed.

#include <algorithm>
#include <cmath>
#include <optional>
#include <ranges>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <apps/common/run_main.h>
#include <braid/autograd/derivatives.h>
#include <braid/autograd/ops.h>
#include <tests/autograd/op_registry.h>
#include <tests/planted/errors.h>
#include <tests/planted/setting.h>

namespace braid::planted {
namespace {

using By = GradcheckOptions::By;

struct Options {
  std::string only;
  bool markdown = false;
  std::uint64_t seed = 0;
};

/// Errors of one kind, and how they are found.
struct Hunt {
  std::string_view title, sentence;  // of gradcheck
  std::vector<Error> errors;
  Transformer transformer;
  GradcheckOptions options = {};
};

struct Finding {
  bool found, blamed;
  std::size_t place, ops;  // of the planted op, among all
  int passes;              // forward passes on a tape
  std::string message;
};

/// `evaluate()` is outside of a HigherOrder scope, where messages number an op unless fewer ops have its name there.
Finding judged(const GradcheckResult& result, const Error& error, const Hunt& hunt, const Planting& planting,
               const auto& evaluate) {
  const int passes = planting.evaluations();
  const std::size_t occurrences = planting.occurrences();
  std::size_t place = planting.place(), ops = planting.ops();
  if (error.rule) evaluate();
  if (planting.occurrences() == occurrences) place = planting.place(), ops = planting.ops();
  const std::string expected = fmt::format("{}: op '{}' (#{} of {})", hunt.sentence, error.op, place, ops);
  const std::string last_line = result.message.substr(result.message.rfind('\n') + 1);
  return {!result.ok, last_line.starts_with(expected), place, ops, passes, result.message};
}

/// The op with few others; second derivatives need a function of it that is not linear.
std::pair<GradcheckFunction, std::vector<Tensor>> alone_with(const Error& error) {
  if (error.vjp) return {alone(error.op).f, inputs_of(alone(error.op))};
  const std::vector<OpCase> cases = op_registry();
  const auto found = std::ranges::find(cases, error.op, &OpCase::op);
  check_value(found != cases.end(), "planted_errors: there is no case for op '{}'", error.op);
  const auto f = [f = found->f](std::span<const Var> x) {
    const Var y = f(x);
    return pow(1 + y, 2) * sum(x[0] * x[0]);
  };
  return {f, make_inputs(*found, Layout::contiguous)};
}

Finding find_alone(const Error& error, const Hunt& hunt) {
  Planting planting(error, 0);
  const auto [f, inputs] = alone_with(error);
  const auto counted = [&, &f = f](std::span<const Var> x) { return planting.evaluate([&] { return f(x); }); };
  GradcheckOptions options = hunt.options;
  options.max_elements = GradcheckOptions().max_elements;
  return judged(gradcheck(counted, inputs, options), error, hunt, planting, [&, &inputs = inputs] {
    Tape tape;
    std::vector<Var> watched;
    for (const Tensor& input : inputs) watched.push_back(tape.watch(input));
    counted(watched);
  });
}

using Gradients = std::vector<Tensor>;

Gradients values_of(const Transformer& gradient) {
  Gradients all;
  for_each_param(gradient, [&](const std::string&, const Var& g) { all.push_back(g.value()); });
  return all;
}

/// Whether the gradient of some parameter is wrong by more than rounding.
bool differ(const Gradients& a, const Gradients& b) {
  const auto norm = [](const Var& x) { return std::sqrt(sum(x * x).item()); };
  return std::ranges::any_of(std::views::iota(0u, a.size()),
                             [&](std::size_t i) { return norm(Var(a[i]) - b[i]) > 1e-5 * norm(b[i]) + 1e-12; });
}

/// From number `start` on, the first call of the op in the transformer where the error makes a gradient wrong, or a
/// product with the Hessian.
std::size_t harmed_occurrence(const Error& error, const Transformer& model, std::size_t start) {
  const auto planted = [&](std::size_t occurrence) {
    Planting planting(error, occurrence);
    const auto counted = [&](const Transformer& m) { return planting.evaluate([&] { return loss(m); }); };
    Gradients all = values_of(error.vjp ? grad(counted)(model) : hvp(counted, model, model));
    return std::pair(std::move(all), planting.occurrences());
  };
  const auto [right, occurrences] = planted(std::string::npos);
  for (std::size_t i = start; i < start + occurrences; ++i)
    if (differ(planted(i % occurrences).first, right)) return i % occurrences;
  throw ValueError(fmt::format("planted_errors: in the transformer, '{}' of {} is no error", error.words, error.op));
}

Finding find_in_transformer(const Error& error, const Hunt& hunt, std::size_t start) {
  Planting planting(error, harmed_occurrence(error, hunt.transformer, start));
  const auto counted = [&](const Transformer& m) { return planting.evaluate([&] { return loss(m); }); };
  GradcheckOptions options = hunt.options;
  int own = 0;  // passes of gradcheck itself, which ends with the derivatives
  options.progress = [&](std::int64_t, std::int64_t) { own = planting.evaluations(); };
  Finding finding = judged(gradcheck_module(hunt.transformer, counted, options), error, hunt, planting,
                           [&] { grad(counted)(hunt.transformer); });
  finding.passes -= own;
  return finding;
}

/// Prints a row and returns whether the error was found, and only it.
bool report(const Error& error, const Hunt& hunt, std::size_t number, const Options& options) {
  const Finding alone = find_alone(error, hunt), within = find_in_transformer(error, hunt, number + options.seed);
  const auto word = [](const Finding& f) { return f.blamed ? "blamed" : f.found ? "found" : "missed"; };
  fmt::print(fmt::runtime(options.markdown ? "| {} | `{}` | {} | {} as #{} of {} | {} |\n"
                                           : "{:<62} {:<16}  {}  {} as #{:>3} of {} {:>4}\n"),
             error.words, error.op, word(alone), word(within), within.place, within.ops, within.passes);
  for (const Finding& finding : {alone, within})
    if (!finding.blamed) fmt::print(stderr, "{}\n", finding.message);
  std::fflush(stdout);
  return alone.blamed && within.blamed;
}

bool report_all(const Hunt& hunt, const Options& options) {
  fmt::print("{}{}{}", options.markdown ? "\n" : "", hunt.title,
             options.markdown ? "\n\n| error | op | alone | in the transformer | passes |\n|---|---|---|---|---|\n"
                              : ": what gradcheck says of it alone and in the transformer, forward passes of blame\n");
  const GradcheckResult sound = gradcheck_module(hunt.transformer, loss, hunt.options);
  if (!sound) fmt::print(stderr, "without an error: {}\n", sound.message);
  std::size_t tried = 0, right = 0;
  for (std::size_t i = 0; i < hunt.errors.size(); ++i) {
    const Error& error = hunt.errors[i];
    if ((error.op + ": " + error.words).find(options.only) == std::string::npos) continue;
    ++tried;
    right += report(error, hunt, i, options);
  }
  fmt::print("{}{} of {} errors found and the right op blamed, alone and in the transformer\n",
             options.markdown ? "\n" : "", right, tried);
  return sound && right == tried;
}

bool hunt_all(const Options& options) {
  const auto brief = [&](int order, By by) {
    return GradcheckOptions{.max_elements = 4, .directions = 1, .seed = options.seed, .order = order, .by = by};
  };
  std::vector<Error> vjps = op_errors();
  for (const Error& error : mhc_errors()) vjps.push_back(error);
  bool right = true;
  for (const Hunt& hunt : {Hunt{"In vjps", "first wrong vjp", vjps, transformer(), brief(1, By::differences)},
                           Hunt{"In vjps, by rules", "first wrong vjp", vjps, transformer(), brief(1, By::rules)},
                           Hunt{"In rules", "first rule that differs from its vjp", rule_errors(),
                                transformer_of_primitives(), brief(2, By::differences)}})
    right &= report_all(hunt, options);
  return right;
}

}  // namespace
}  // namespace braid::planted

int main(int argc, char** argv) {
  return braid::apps::run_main("planted_errors", [&] {
    CLI::App app("Plants errors in the vjps and rules of braid's ops and lets gradcheck find them");
    braid::planted::Options options;
    app.add_option("--only", options.only, "errors with this in 'op: words'");
    app.add_flag("--markdown", options.markdown, "the tables of tests/planted/README.md");
    app.add_option("--seed", options.seed, "of the directions, and of where errors are planted in the transformer");
    braid::apps::parse_command_line(app, argc, argv);
    return braid::planted::hunt_all(options) ? 0 : 1;
  });
}

// Plants errors in the vjps of braid's ops, one at a time, and lets gradcheck find them: with the op alone and in a
// transformer of six layers. Exit code 1 when one is missed or another op is blamed.

#include <algorithm>
#include <cmath>
#include <ranges>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <apps/common/run_main.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <tests/planted/errors.h>
#include <tests/planted/setting.h>

namespace braid::planted {
namespace {

struct Options {
  std::string only;
  bool markdown = false;
  std::uint64_t seed = 0;
};

struct Finding {
  bool found, blamed;
  std::size_t place, ops;  // of the planted op, among all
  int passes;              // forward passes on a tape
  std::string message;
};

Finding judged(const GradcheckResult& result, const Error& error, const Planting& planting) {
  const std::string expected =
      fmt::format("first wrong vjp: op '{}' (#{} of {}), ", error.op, planting.place(), planting.ops());
  const std::string last_line = result.message.substr(result.message.rfind('\n') + 1);
  return {!result.ok,     last_line.starts_with(expected), planting.place(),
          planting.ops(), planting.evaluations(),          result.message};
}

Finding find_alone(const Error& error, std::uint64_t seed) {
  Planting planting(error.op, 0, error.wrong);
  const Alone& setting = alone(error.op);
  const auto f = [&](std::span<const Var> x) {
    planting.restart();
    return setting.f(x);
  };
  return judged(gradcheck(f, inputs_of(setting), {.seed = seed}), error, planting);
}

GradcheckOptions brief(std::uint64_t seed) { return {.max_elements = 4, .directions = 1, .seed = seed}; }

std::vector<Tensor> gradients(const Transformer& model) {
  std::vector<Tensor> all;
  for_each_param(value_and_grad(loss)(model).second,
                 [&](const std::string&, const Var& g) { all.push_back(g.value()); });
  return all;
}

/// Whether the gradient of some parameter is wrong by more than rounding.
bool differ(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  const auto norm = [](const Var& x) { return std::sqrt(sum(x * x).item()); };
  return std::ranges::any_of(std::views::iota(0u, a.size()),
                             [&](std::size_t i) { return norm(Var(a[i]) - b[i]) > 1e-5 * norm(b[i]) + 1e-12; });
}

/// From number `start` on, the first call of the op in the transformer where the error makes a gradient wrong.
std::size_t harmed_occurrence(const Error& error, const Transformer& model, std::size_t start) {
  const auto planted = [&](std::size_t occurrence) {
    Planting planting(error.op, occurrence, error.wrong);
    std::vector<Tensor> all = gradients(model);
    return std::pair(std::move(all), planting.occurrences());
  };
  const auto [right, occurrences] = planted(std::string::npos);
  for (std::size_t i = start; i < start + occurrences; ++i)
    if (differ(planted(i % occurrences).first, right)) return i % occurrences;
  throw ValueError(fmt::format("planted_errors: in the transformer, '{}' of {} is no error", error.words, error.op));
}

Finding find_in_transformer(const Error& error, std::size_t start, std::uint64_t seed) {
  const Transformer model = transformer();
  Planting planting(error.op, harmed_occurrence(error, model, start), error.wrong);
  const auto f = [&](const Transformer& m) {
    planting.restart();
    return loss(m);
  };
  GradcheckOptions options = brief(seed);
  int own = 0;  // passes of gradcheck itself, which ends with the derivatives
  options.progress = [&](std::int64_t, std::int64_t) { own = planting.evaluations(); };
  Finding finding = judged(gradcheck_module(model, f, options), error, planting);
  finding.passes -= own;
  return finding;
}

/// Prints a row and returns whether the error was found, and only it.
bool report(const Error& error, std::size_t number, const Options& options) {
  const Finding alone = find_alone(error, options.seed),
                within = find_in_transformer(error, number + options.seed, options.seed);
  const auto word = [](const Finding& f) { return f.blamed ? "blamed" : f.found ? "found" : "missed"; };
  fmt::print(fmt::runtime(options.markdown ? "| {} | `{}` | {} | {} as #{} of {} | {} |\n"
                                           : "{:<62} {:<16}  {}  {} as #{:>3} of {} {:>4}\n"),
             error.words, error.op, word(alone), word(within), within.place, within.ops, within.passes);
  for (const Finding& finding : {alone, within})
    if (!finding.blamed) fmt::print(stderr, "{}\n", finding.message);
  std::fflush(stdout);
  return alone.blamed && within.blamed;
}

bool report_all(const Options& options) {
  std::vector<Error> errors = op_errors();
  for (const Error& error : mhc_errors()) errors.push_back(error);
  fmt::print("{}",
             options.markdown
                 ? "| error | op | alone | in the transformer | passes |\n|---|---|---|---|---|\n"
                 : "error, op, what gradcheck says of it alone and in the transformer, forward passes of blame\n");
  const GradcheckResult sound = gradcheck_module(transformer(), loss, brief(options.seed));
  if (!sound) fmt::print(stderr, "without an error: {}\n", sound.message);
  std::size_t tried = 0, right = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if ((errors[i].op + ": " + errors[i].words).find(options.only) == std::string::npos) continue;
    ++tried;
    right += report(errors[i], i, options);
  }
  fmt::print("{}{} of {} errors found and the right op blamed, alone and in the transformer\n",
             options.markdown ? "\n" : "", right, tried);
  return sound && tried > 0 && right == tried;
}

}  // namespace
}  // namespace braid::planted

int main(int argc, char** argv) {
  return braid::apps::run_main("planted_errors", [&] {
    CLI::App app("Plants errors in the vjps of braid's ops and lets gradcheck find them");
    braid::planted::Options options;
    app.add_option("--only", options.only, "errors with this in 'op: words'");
    app.add_flag("--markdown", options.markdown, "the table for docs/verify.md");
    app.add_option("--seed", options.seed, "of the directions, and of where errors are planted in the transformer");
    braid::apps::parse_command_line(app, argc, argv);
    return braid::planted::report_all(options) ? 0 : 1;
  });
}

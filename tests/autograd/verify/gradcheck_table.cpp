// Prints the worst gradcheck error of every op, by the layout of its inputs, or what gradcheck says of it at random
// points. Exit code 1 when one is above the tolerance.

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <apps/common/run_main.h>
#include <tests/autograd/op_registry.h>
#include <tests/verdict_table.h>

namespace braid {
namespace {

using Errors = std::array<double, kLayouts.size()>;  // by layout

std::map<std::string, Errors> worst_errors(const GradcheckOptions& options) {
  std::map<std::string, Errors> table;
  for (const OpCase& op_case : op_registry()) {
    Errors& errors = table[op_case.op];
    for (std::size_t i = 0; i < kLayouts.size(); ++i)
      errors[i] = std::max(errors[i], gradcheck(op_case.f, make_inputs(op_case, kLayouts[i]), options).worst);
  }
  return table;
}

/// Prints the table and returns whether every error is within the tolerance.
bool print_table(const std::map<std::string, Errors>& table, double tolerance) {
  fmt::print("{:<18}", "op");
  for (const Layout layout : kLayouts) fmt::print("{:>12}", name(layout));
  fmt::print("{:>12}\n", "worst");
  double worst = 0;
  for (const auto& [op, errors] : table) {
    const double worst_of_op = std::ranges::max(errors);
    worst = std::max(worst, worst_of_op);
    fmt::print("{:<18}", op);
    for (const double error : errors) fmt::print("{:>12.1e}", error);
    fmt::print("{:>12.1e}\n", worst_of_op);
  }
  const bool ok = worst <= tolerance;
  fmt::print("{}: {} ops, worst relative error {:.1e} in f64, tolerance {:.1e}\n", ok ? "passed" : "failed",
             table.size(), worst, tolerance);
  return ok;
}

/// Prints what gradcheck says of every op at random points, kinks included, and returns whether none was wrong.
bool check_points(std::int64_t points, const GradcheckOptions& options) {
  VerdictTable table;
  for (const OpCase& op_case : op_registry())
    for (std::int64_t point = 0; point < points; ++point) {
      const GradcheckResult result =
          gradcheck(op_case.f, make_random_inputs(op_case, static_cast<std::uint64_t>(point)), options);
      if (!result) fmt::print(stderr, "{}, point {}: {}\n", op_case.op, point, result.message);
      table.add(op_case.op, result);
    }
  fmt::print("{}", table.text());
  return table.ok();
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  return braid::apps::run_main("gradcheck_table", [&] {
    CLI::App app("Worst relative error of every op's gradient in f64, by the layout of its inputs");
    braid::GradcheckOptions options;
    app.add_option("--tolerance", options.tolerance, "largest error that passes")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--seed", options.seed, "of the output's cotangent")->capture_default_str();
    std::int64_t points = 0;
    app.add_option("--points", points, "check every case at this number of random points instead, kinks included")
        ->check(CLI::Range(0, 1'000'000'000));
    braid::apps::parse_command_line(app, argc, argv);
    if (points > 0) return braid::check_points(points, options) ? 0 : 1;
    return braid::print_table(braid::worst_errors(options), options.tolerance) ? 0 : 1;
  });
}

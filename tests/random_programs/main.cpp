// Draws random programs and small modules and checks their gradients and values, as tests/random_programs/check.h says.
// One that fails is printed as a C++ test, as small as it gets. Exit code 1 when one fails.

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <apps/common/progress.h>
#include <apps/common/run_main.h>
#include <braid/core/parallel.h>
#include <tests/random_programs/modules.h>
#include <tests/random_programs/print.h>
#include <tests/random_programs/shrink.h>
#include <tests/random_programs/table.h>
#include <tests/verdict_table.h>

namespace braid::programs {
namespace {

constexpr std::uint64_t kBitsEvery = 100, kSecondOrderEvery = 10;  // programs

struct Flags {
  std::uint64_t seed = 1, first = 0, count = 1'000'000, modules = 1000;
  std::optional<std::uint64_t> only, only_module;
  int jobs = 1;
  bool rules = false;
};

/// Counts and shows what was done; may be called by all threads.
class Report {
 public:
  explicit Report(std::uint64_t total) : progress_("checked", static_cast<std::int64_t>(total)) {}

  void done() {
    const std::lock_guard lock(mutex_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    ++done_;
    progress_.update(static_cast<std::int64_t>(done_),
                     fmt::format("{:.0f}/s, {} failed", static_cast<double>(done_) / seconds, failed_));
  }

  void failure(const std::string& text) {
    const std::lock_guard lock(mutex_);
    ++failed_;
    progress_.message(text);
  }

  std::uint64_t finish() {
    progress_.finish();
    return failed_;
  }

 private:
  std::mutex mutex_;
  std::uint64_t done_ = 0, failed_ = 0;
  apps::Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void run_program(std::uint64_t seed, std::uint64_t index, Check* check, Report& report) {
  const std::string flags = fmt::format("--seed {} --only {}", seed, index);
  try {
    const Program program = random_program(all_ops(), seed, index);
    const auto failure = check(program);
    if (!failure) return;
    const Program smallest = shrunk(program, failure->fault, check);
    report.failure(fmt::format(
        "{}: {}\n{}", flags, failure->message,
        test_text(smallest, check(smallest).value_or(*failure), fmt::format("Seed{}Index{}", seed, index))));
  } catch (const std::exception& error) {
    report.failure(fmt::format("{}: drawing or shrinking it threw: {}", flags, error.what()));
  }
}

CheckedModule run_module(std::uint64_t seed, std::uint64_t index, bool bits, Report& report) {
  const ModulePlan plan = random_plan(seed, index);
  const CheckedModule checked = check_module(plan, bits);
  if (!checked.failure) return checked;
  const ModulePlan smallest = shrunk(plan, [&](const ModulePlan& smaller) {
    const auto failure = check_module(smaller, bits).failure;
    return failure && failure->fault == checked.failure->fault;
  });
  report.failure(fmt::format(
      "--seed {} --only-module {}: {}\n{}", seed, index, checked.failure->message,
      test_text(smallest, check_module(smallest, bits).failure->message, fmt::format("Seed{}Index{}", seed, index))));
  return checked;
}

/// Calls f(first), ..., f(first + count - 1) on `jobs` threads.
void for_each_index(std::uint64_t first, std::uint64_t count, int jobs, const std::function<void(std::uint64_t)>& f) {
  std::atomic<std::uint64_t> next = first;
  const auto work = [&] {
    for (std::uint64_t i = next++; i < first + count; i = next++) f(i);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

/// Returns how many failed.
std::uint64_t run(const Flags& flags) {
  set_num_threads(1);
  Report report(flags.count + flags.modules);
  for_each_index(flags.first, flags.count, flags.jobs, [&](std::uint64_t index) {
    if (!flags.rules) run_program(flags.seed, index, check_program, report);
    const bool second_order = !flags.rules && index % kSecondOrderEvery == 0;
    run_program(flags.seed, index, second_order ? check_second_order : check_rules, report);
    report.done();
  });
  VerdictTable table;
  std::mutex mutex;
  const std::uint64_t first_module = flags.only_module.value_or(0);
  for_each_index(first_module, flags.modules, flags.jobs, [&](std::uint64_t index) {
    const CheckedModule checked = run_module(flags.seed, index, false, report);
    report.done();
    const std::lock_guard lock(mutex);
    table.add(module_kinds()[index % module_kinds().size()], checked.gradients);
  });
  // On several threads, which one process can only try alone.
  for (std::uint64_t i = 0; i < flags.count && !flags.rules; i += kBitsEvery)
    run_program(flags.seed, flags.first + i, check_bits, report);
  for (std::uint64_t i = 0; i < flags.modules; ++i) run_module(flags.seed, first_module + i, true, report);
  const std::uint64_t failed = report.finish();
  if (flags.modules > 0) fmt::print("{}", table.text());
  fmt::print("{} programs, {} modules: {} failed\n", flags.count, flags.modules, failed);
  return failed;
}

}  // namespace
}  // namespace braid::programs

int main(int argc, char** argv) {
  return braid::apps::run_main("random_programs", [&] {
    CLI::App app("Checks gradients and values of random programs and modules");
    braid::programs::Flags flags;
    app.add_option("--seed", flags.seed, "of everything that is drawn")->capture_default_str();
    app.add_option("--first", flags.first, "index of the first program")->capture_default_str();
    app.add_option("--count", flags.count, "how many programs")->capture_default_str();
    app.add_option("--modules", flags.modules, "how many modules; every kind in turn")->capture_default_str();
    app.add_option("--jobs", flags.jobs, "threads, a program on each")
        ->capture_default_str()
        ->check(CLI::Range(1, 256));
    app.add_flag("--rules", flags.rules, "only gradients by rules: a million programs take four minutes on one core");
    app.add_option("--only", flags.only, "the program of this index alone");
    app.add_option("--only-module", flags.only_module, "the module of this index alone")->excludes("--only");
    braid::apps::parse_command_line(app, argc, argv);
    if (flags.only) flags.first = *flags.only, flags.count = 1, flags.modules = 0;
    if (flags.only_module) flags.count = 0, flags.modules = 1;
    return braid::programs::run(flags) == 0 ? 0 : 1;
  });
}

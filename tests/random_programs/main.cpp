// Draws random programs and small modules and checks their gradients and values, as tests/random_programs/check.h says.
// A program that fails is printed as a C++ test, as small as it gets. Exit code 1 when one fails.

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/core/parallel.h>
#include <examples/common/progress.h>
#include <tests/random_programs/modules.h>
#include <tests/random_programs/print.h>
#include <tests/random_programs/shrink.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

constexpr std::uint64_t kBitsEvery = 100;  // programs

struct Flags {
  std::uint64_t seed = 1, first = 0, count = 1'000'000, modules = 1000;
  std::optional<std::uint64_t> only, only_module;
  int jobs = 1;
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
  examples::Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void run_program(std::uint64_t seed, std::uint64_t index, bool bits, Report& report) {
  const auto check_it = [&](const Program& program) { return bits ? check_bits(program) : check_program(program); };
  const std::string flags = fmt::format("--seed {} --only {}", seed, index);
  try {
    const Program program = random_program(all_ops(), seed, index);
    const auto failure = check_it(program);
    if (!failure) return;
    const Program smallest = shrunk(program, failure->fault);
    report.failure(fmt::format(
        "{}: {}\n{}", flags, failure->message,
        test_text(smallest, check_it(smallest).value_or(*failure), fmt::format("Seed{}Index{}", seed, index))));
  } catch (const std::exception& error) {
    report.failure(fmt::format("{}: drawing or shrinking it threw: {}", flags, error.what()));
  }
}

void run_module(std::uint64_t seed, std::uint64_t index, Report& report) {
  if (const auto failure = check_module(seed, index))
    report.failure(
        fmt::format("--seed {} --only-module {}: {}: {}", seed, index, module_text(seed, index), failure->message));
}

/// Calls f(first), ..., f(first + count - 1) on `jobs` threads.
void for_each_index(std::uint64_t first, std::uint64_t count, int jobs, const std::function<void(std::uint64_t)>& f) {
  std::atomic<std::uint64_t> next = first;
  const auto work = [&] {
    for (std::uint64_t i = next++; i < first + count; i = next++) f(i);
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
}

/// Returns how many failed.
std::uint64_t run(const Flags& flags) {
  set_num_threads(1);
  Report report(flags.count + flags.modules);
  for_each_index(flags.first, flags.count, flags.jobs, [&](std::uint64_t index) {
    run_program(flags.seed, index, false, report);
    report.done();
  });
  // On several threads, which one process can only try alone.
  for (std::uint64_t i = 0; i < flags.count; i += kBitsEvery) run_program(flags.seed, flags.first + i, true, report);
  for (std::uint64_t i = 0; i < flags.modules; ++i) {
    run_module(flags.seed, flags.only_module.value_or(i), report);
    report.done();
  }
  const std::uint64_t failed = report.finish();
  fmt::print("{} programs, {} modules: {} failed\n", flags.count, flags.modules, failed);
  return failed;
}

}  // namespace
}  // namespace braid::programs

int main(int argc, char** argv) {
  CLI::App app("Checks gradients and values of random programs and modules");
  braid::programs::Flags flags;
  app.add_option("--seed", flags.seed, "of everything that is drawn")->capture_default_str();
  app.add_option("--first", flags.first, "index of the first program")->capture_default_str();
  app.add_option("--count", flags.count, "how many programs")->capture_default_str();
  app.add_option("--modules", flags.modules, "how many modules")->capture_default_str();
  app.add_option("--jobs", flags.jobs, "threads, a program on each")->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--only", flags.only, "the program of this index alone");
  app.add_option("--only-module", flags.only_module, "the module of this index alone")->excludes("--only");
  try {
    app.parse(argc, argv);
    if (flags.only) flags.first = *flags.only, flags.count = 1, flags.modules = 0;
    if (flags.only_module) flags.count = 0, flags.modules = 1;
    return braid::programs::run(flags) == 0 ? 0 : 1;
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "random_programs: {}\n", error.what());
    return 2;
  }
}

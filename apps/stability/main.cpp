// Trains deep networks under several connections and shows which of them stay stable; `--help` lists the flags.
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/core/files/atomic_file.h>
#include <braid/core/parallel.h>

#include "../common/progress.h"
#include "../common/run_folder.h"
#include "../common/run_info.h"
#include "../common/run_main.h"
#include "../platform/signals.h"
#include "plan.h"
#include "report.h"
#include "run.h"
#include "scheduler.h"
#include "tables.h"

namespace braid::stability {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config;
  fs::path out;
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string command;  ///< the command line that starts or continues this experiment
};

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Runs the stability experiment that a configuration describes and writes runs, summary.csv, figures and "
      "report.md "
      "into --out. Started again with the same configuration and folder, it continues: finished runs are not "
      "repeated.");
  app.add_option("config", o.config, "configuration file (TOML)")->required();
  app.add_option("--out", o.out, "results folder (default: runs/stability-CONFIG-TIME)");
  app.add_option("--jobs", o.jobs,
                 "number of runs at a time, one process each; results do not depend on it (default: all cores)")
      ->check(CLI::Range(1, 1024));
  apps::parse_command_line(app, argc, argv);
  for (int i = 0; i < argc; ++i) o.command += (i > 0 ? " " : "") + std::string(argv[i]);
  if (o.out.empty()) {
    o.out = fmt::format("runs/stability-{}-{}", fs::path(o.config).stem().string(), apps::time_stamp());
    o.command += " --out " + o.out.string();
  }
  apps::check_utf8("the command line", o.command);
  apps::check_results_folder(o.out);
  return o;
}

/// The runs that are not finished, with their estimated durations: first times steps of each task and mode.
std::vector<Job> open_jobs(const Config& config, const std::vector<RunSettings>& runs, const Folder& folder) {
  std::vector<Job> jobs;
  std::map<std::pair<Task, Mode>, double> seconds;
  for (const RunSettings& run : runs) {
    const fs::path file = folder.run(id(run));
    if (fs::exists(file)) continue;
    const auto [known, is_new] = seconds.try_emplace({run.task, run.mode});
    if (is_new) known->second = seconds_per_step(config, run);
    jobs.push_back({id(run), known->second * static_cast<double>(config.task(run.task).steps), [=, &config] {
                      write_file_atomically(file, [&](std::ostream& out) { train_run(config, run, out); });
                    }});
  }
  return jobs;
}

void print_plan(const Options& o, const Config& config, std::size_t runs) {
  apps::say("{}: {} runs, {} at a time\n", o.config, runs, o.jobs);
  for (std::size_t task = 0; task < kTasks; ++task)
    if (const auto& t = config.tasks[task])
      apps::say("  {}: {} sublayers of {} channels, {} steps; modes {}; learning rates {}; seeds {}\n",
                task_names()[task], t->sublayers, t->channels, t->steps, t->modes.size(), t->learning_rates.size(),
                t->seeds.size());
  apps::say("a run has diverged when its loss is not finite or exceeds {} times its first loss; it stops there\n",
            config.divergence);
  apps::say("results: {}\n", o.out.string());
}

void print_estimate(const Options& o, const std::vector<Job>& jobs, std::size_t runs) {
  double seconds = 0;
  for (const Job& job : jobs) seconds += job.seconds / o.jobs;
  apps::say(
      "{} runs are finished already; the others take about {}, less where they diverge, more where "
      "sharpness is measured\n",
      runs - jobs.size(), apps::human_duration(seconds));
}

int run(const Options& o) {
  const Config config = read_config(o.config);
  const std::vector<RunSettings> runs = plan(config);
  const Folder folder = open_folder(o.out, config);
  const apps::FolderLock lock(folder.path);
  read_results(folder, runs);  // a damaged one ends the program before it has written
  write_config(folder, config);
  add_session(folder, o.command);
  print_plan(o, config, runs.size());
  set_num_threads(1);  // runs are parallel, one thread each
  const std::vector<Job> jobs = open_jobs(config, runs, folder);
  print_estimate(o, jobs, runs.size());

  const Outcome outcome = run_jobs(jobs, o.jobs, runs.size());
  if (outcome.interrupted) {
    apps::say("interrupted; to continue: {}\n", o.command);
    return 130;
  }
  const std::vector<Result> results = read_results(folder, runs);
  write_summary(folder.summary(), results);
  apps::make_results_folder(folder.figures());
  apps::run_plot_script("stability.py", folder.path, folder.figures());
  write_report(folder, config, results);
  apps::say("\n{}report: {}\n", overview(config, results), folder.report().string());
  for (const std::string& lost : outcome.lost) fmt::print(stderr, "stability: lost: {}\n", lost);
  return outcome.lost.empty() ? 0 : 1;
}

}  // namespace
}  // namespace braid::stability

int main(int argc, char** argv) {
  using namespace braid::stability;
  braid::platform::ignore_closed_pipes();  // work continues when the reader of stdout is gone
  return braid::apps::run_main("stability", [&] { return run(parse(argc, argv)); });
}

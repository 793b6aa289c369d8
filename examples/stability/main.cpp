// Trains deep networks under every connection and shows which of them stay stable; `--help` lists the flags.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <braid/core/atomic_file.h>
#include <braid/core/parallel.h>

#include "../common/progress.h"
#include "../common/run_info.h"
#include "plan.h"
#include "report.h"
#include "run.h"
#include "scheduler.h"

namespace braid::stability {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string config;
  fs::path out;
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string command;  ///< that starts or continues this experiment
};

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Runs the stability experiment that a configuration describes and writes runs, summary.csv, figures and "
      "report.md "
      "into --out. Started again with the same configuration and folder, it continues: finished runs are not "
      "repeated.");
  app.option_defaults()->take_last();
  app.add_option("config", o.config, "configuration file (TOML)")->required();
  app.add_option("--out", o.out, "results folder (default: runs/stability-CONFIG-TIME)");
  app.add_option("--jobs", o.jobs, "runs at a time, a process each; results do not depend on it (default: all cores)")
      ->check(CLI::Range(1, 1024));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "stability: {}\n", error.what());
    std::exit(2);
  }
  for (int i = 0; i < argc; ++i) o.command += (i > 0 ? " " : "") + std::string(argv[i]);
  if (o.out.empty()) {
    o.out = fmt::format("runs/stability-{}-{}", fs::path(o.config).stem().string(), examples::time_stamp());
    o.command += " --out " + o.out.string();
  }
  return o;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Holds a folder against other programs of this kind until the process and its children have ended.
void lock(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  check<FileError>(fd >= 0, "--out: {} cannot be opened", folder.string());
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return;
  fmt::print("waiting for another program that writes to {}\n", folder.string());
  flock(fd, LOCK_EX);
}

/// Makes the folder, or continues it if it was made with the same configuration.
Folder open_folder(const Options& o, const Config& config) {
  const Folder folder{o.out};
  const bool there = fs::exists(folder.config());
  check_value(there || !fs::exists(folder.path) || fs::is_empty(folder.path),
              "--out: {} holds other files; name another folder", folder.path.string());
  check_value(!there || content(folder.config()) == config.text,
              "--out: {} was made with another configuration; name another folder", folder.path.string());
  examples::make_results_folder(folder.runs());
  lock(folder.path);
  write_file_atomically(folder.config(), [&](std::ostream& file) { file << config.text; });
  return folder;
}

/// Adds this start of the program to run_info.json: a folder that was continued has several.
void write_info(const Folder& folder, const Options& o) {
  Json info = Json::parse(content(folder.info()), nullptr, /*allow_exceptions=*/false);
  if (!info.is_object()) info = {{"sessions", Json::array()}};
  info["sessions"].push_back({{"command", o.command},
                              {"started", examples::time_stamp()},
                              {"git_commit", examples::git_commit()},
                              {"machine", examples::machine_info()}});
  write_file_atomically(folder.info(), [&](std::ostream& file) { file << info.dump(2) << "\n"; });
}

/// The runs that are not finished, each with about how long it takes: steps of its task and mode are timed first.
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

void announce(const Options& o, const Config& config, const std::vector<RunSettings>& runs,
              const std::vector<Job>& jobs) {
  fmt::print("{}: {} runs, {} finished already; {} at a time\n", o.config, runs.size(), runs.size() - jobs.size(),
             o.jobs);
  for (std::size_t task = 0; task < kTasks; ++task)
    if (const auto& t = config.tasks[task])
      fmt::print("  {}: {} sublayers of {} channels, {} steps; {} modes, {} learning rates, {} seeds\n",
                 task_names()[task], t->sublayers, t->channels, t->steps, t->modes.size(), t->learning_rates.size(),
                 t->seeds.size());
  double seconds = 0;
  for (const Job& job : jobs) seconds += job.seconds / o.jobs;
  fmt::print("a run has diverged when its loss is not finite or exceeds {} times its first loss; it stops there\n",
             config.divergence);
  fmt::print("results: {}; this takes about {}, less where runs diverge\n", o.out.string(),
             examples::human_duration(seconds));
}

int run(const Options& o) {
  const Config config = read_config(o.config);
  const std::vector<RunSettings> runs = plan(config);
  const Folder folder = open_folder(o, config);
  write_info(folder, o);
  set_num_threads(1);  // runs are the parallel part
  const std::vector<Job> jobs = open_jobs(config, runs, folder);
  announce(o, config, runs, jobs);

  const Outcome outcome = run_jobs(jobs, o.jobs, runs.size());
  if (outcome.interrupted) {
    fmt::print("interrupted; to continue: {}\n", o.command);
    return 130;
  }
  const std::vector<Result> results = read_results(folder, runs);
  write_summary(folder.summary(), results);
  examples::make_results_folder(folder.figures());
  examples::run_plot_script("stability.py", folder.path, folder.figures());
  write_report(folder, config, results);
  fmt::print("\n{}report: {}\n", tables(config, results), folder.report().string());
  for (const std::string& lost : outcome.lost) fmt::print(stderr, "stability: lost: {}\n", lost);
  return outcome.lost.empty() ? 0 : 1;
}

}  // namespace
}  // namespace braid::stability

int main(int argc, char** argv) {
  try {
    return braid::stability::run(braid::stability::parse(argc, argv));
  } catch (const braid::Error& error) {
    fmt::print(stderr, "stability: {}\n", error.what());
    return 2;
  }
}

// Trains one small language model under every connection and compares loss, time and gains; `--help` lists the flags.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <braid/core/files/atomic_file.h>
#include <braid/core/parallel.h>

#include "common/json_lines.h"
#include "common/progress.h"
#include "common/run_folder.h"
#include "common/run_info.h"
#include "common/run_main.h"
#include "common/trainer.h"
#include "platform/signals.h"

namespace {

using namespace braid;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  fs::path text, out;
  apps::TrainerSettings training{
      .layers = 4, .channels = 48, .context = 32, .batch = 8, .steps = 400, .lr = 3e-3, .min_lr = 3e-4};
  std::vector<std::string> connections = {"all"}, mixings;
  std::int64_t evaluations = 8;
  int threads = 0;
};

/// A model in training and its measurements.
struct Entry {
  std::string connection;  // mhc+MIXING with --mixings
  apps::Trainer trainer;
  std::vector<double> ms;  // per step
  double held_out = 0;
};

/// A row of the table.
struct Result {
  std::string connection;
  std::int64_t parameters;
  double held_out, ms;
  std::vector<mhc::ConnectionStats> stats;

  double forward_gain() const { return stats.back().composed_forward_gain; }
  double backward_gain() const { return stats.front().composed_backward_gain; }
};

/// The names that a list on the command line chooses; `all` means all.
template <class Names>
std::vector<std::string> chosen(std::string_view flag, const std::vector<std::string>& list, const Names& all) {
  if (list.size() == 1 && list.front() == "all") return {all.begin(), all.end()};
  for (const std::string& name : list)
    check_value(std::ranges::find(all, name) != all.end(), "{}: must be all or some of {} but has '{}'", flag,
                fmt::join(all, ", "), name);
  return list;
}

void add_flags(CLI::App& app, Options& o) {
  const auto list = [&app](const char* flag, std::vector<std::string>& names, const char* help) {
    app.add_option(flag, names, help)->delimiter(',')->take_all()->type_name("NAME,..")->default_str("");
  };
  app.add_option("--text", o.text, "text file to learn (default: the system's license texts)");
  list("--connections", o.connections, "kinds of connections to compare, or all (default: all)");
  list("--mixings", o.mixings, "mhc once with each of these mixings, or all (default: --mixing alone)");
  const auto count = [&app](const char* flag, std::int64_t& value, const char* help, std::int64_t most = 1 << 24) {
    app.add_option(flag, value, help)->check(CLI::Range(std::int64_t{1}, most))->capture_default_str();
  };
  count("--layers", o.training.layers, "transformer blocks");
  count("--channels", o.training.channels, "channels of the residual stream");
  count("--heads", o.training.heads, "attention heads; must divide channels");
  count("--context", o.training.context, "characters that the models see");
  count("--batch", o.training.batch, "windows of text per step");
  count("--steps", o.training.steps, "training steps per model", 1'000'000);
  count("--evaluations", o.evaluations, "number of evaluations on the held-out text", 1'000'000);
  app.add_option("--seed", o.training.seed, "seed of initialization and batches")->capture_default_str();
  app.add_option("--threads", o.threads, "threads (0: all cores)")->check(CLI::Range(0, 1024))->capture_default_str();
  app.add_option("--out", o.out, "results folder (default: runs/compare-TIME)");
  apps::add_connection_flags(app, o.training.connection);
}

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Trains one small language model under each connection, on the same batches; prints a table and writes "
      "metrics.jsonl, results.json and loss.png into --out.");
  add_flags(app, o);
  apps::parse_command_line(app, argc, argv);
  o.training.warmup = o.training.steps / 20;
  check_value(o.training.channels % o.training.heads == 0, "--heads: {} heads do not divide {} channels",
              o.training.heads, o.training.channels);
  o.connections = chosen("--connections", o.connections, mhc::connection_names());
  if (!o.mixings.empty())
    o.mixings = chosen("--mixings", o.mixings, mhc::mixing_names(o.training.connection.streams.value_or(4)));
  check_value(o.mixings.empty() || std::ranges::find(o.connections, "mhc") != o.connections.end(),
              "--mixings: applies to mhc, which --connections does not name");
  apps::check_all_apply(o.training.connection, o.connections);
  if (o.out.empty()) o.out = "runs/compare-" + apps::time_stamp();
  apps::check_results_folder(o.out);
  check_value(!fs::exists(o.out / "metrics.jsonl"), "--out: {} holds results; name another folder", o.out.string());
  return o;
}

std::vector<Entry> make_entries(const Options& o, const apps::Corpus& corpus) {
  std::vector<Entry> entries;
  apps::TrainerSettings settings = o.training;
  const auto add = [&](const std::string& name) { entries.push_back({name, apps::Trainer(settings, corpus), {}}); };
  for (const std::string& kind : o.connections) {
    settings.connection.kind = kind;
    if (kind != "mhc" || o.mixings.empty()) {
      add(kind);
      continue;
    }
    for (const std::string& mixing : o.mixings) {
      settings.connection.mixing = mixing;
      add(kind + "+" + mixing);
    }
  }
  return entries;
}

/// One step of `entry`; returns its line for metrics.jsonl.
Json advance(Entry& entry, bool evaluate) {
  const auto start = std::chrono::steady_clock::now();
  const apps::StepResult result = entry.trainer.train_step();
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  check<apps::NonFiniteError>(result.nonfinite.empty(), "{}: step {}: {} is not finite", entry.connection,
                              entry.trainer.step(), result.nonfinite);
  entry.ms.push_back(elapsed.count());
  Json line{{"connection", entry.connection}, {"step", entry.trainer.step()}, {"train_loss", result.loss}};
  if (evaluate) line["val_loss"] = entry.held_out = entry.trainer.evaluate();
  return line;
}

/// Trains all models step by step in turn, so that other load on the machine slows all of them alike.
void train(std::vector<Entry>& entries, std::int64_t steps, std::int64_t evaluations, const fs::path& metrics_file) {
  apps::JSONLines metrics(metrics_file);
  apps::Progress progress("step", steps);
  const std::int64_t every = std::max<std::int64_t>(1, steps / evaluations);
  for (std::int64_t step = 1; step <= steps; ++step) {
    for (Entry& entry : entries) metrics.append(advance(entry, step % every == 0 || step == steps));
    progress.update(step, fmt::format("of {} models", entries.size()));
  }
  progress.finish();
}

Result summarize(Entry& entry) {
  const auto middle = entry.ms.begin() + static_cast<std::ptrdiff_t>(entry.ms.size() / 2);
  std::ranges::nth_element(entry.ms, middle);
  return {entry.connection, num_params(entry.trainer.model()), entry.held_out, *middle, entry.trainer.telemetry()};
}

/// The values of one quantity, per connection in the order of depth.
Json by_depth(const Result& r, const auto& quantity) {
  Json values = Json::array();
  for (const mhc::ConnectionStats& stats : r.stats) values.push_back(std::invoke(quantity, stats));
  return values;
}

Json similarity(const mhc::ConnectionStats& s) { return s.similarity ? Json(*s.similarity) : Json(); }

void print_table(const std::vector<Result>& results) {
  apps::say("\n{:<20}{:>12}{:>15}{:>9}{:>16}{:>15}{:>15}\n", "connection", "parameters", "held-out loss", "ms/step",
            "x " + results.front().connection, "forward gain", "backward gain");
  for (const Result& r : results)
    apps::say("{:<20}{:>12}{:>15.4f}{:>9.1f}{:>16.2f}{:>15.4g}{:>15.4g}\n", r.connection, r.parameters, r.held_out,
              r.ms, r.ms / results.front().ms, r.forward_gain(), r.backward_gain());
  apps::say(
      "\nGains are of the product of all residual maps on held-out text (skip: of its window of states), time is the "
      "median step.\n");
}

void write_results(const Options& o, const std::vector<Result>& results) {
  Json json{{"steps", o.training.steps},
            {"seed", o.training.seed},
            {"git_commit", apps::git_commit()},
            {"machine", apps::machine_info()},
            {"results", Json::array()}};
  for (const Result& r : results)
    json["results"].push_back({{"connection", r.connection},
                               {"parameters", r.parameters},
                               {"held_out_loss", r.held_out},
                               {"ms_per_step", r.ms},
                               {"forward_gain", r.forward_gain()},
                               {"backward_gain", r.backward_gain()},
                               {"by_depth",
                                {{"forward_gain", by_depth(r, &mhc::ConnectionStats::composed_forward_gain)},
                                 {"backward_gain", by_depth(r, &mhc::ConnectionStats::composed_backward_gain)},
                                 {"similarity", by_depth(r, similarity)}}}});
  write_file_atomically(o.out / "results.json", [&](std::ostream& file) { file << json.dump(2) << "\n"; });
}

void run(const Options& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  const apps::Corpus corpus(apps::read_text(o.text), o.training.context);
  std::vector<Entry> entries = make_entries(o, corpus);
  apps::make_results_folder(o.out);
  const apps::FolderLock lock(o.out);
  train(entries, o.training.steps, o.evaluations, o.out / "metrics.jsonl");

  std::vector<Result> results;
  for (Entry& entry : entries) results.push_back(summarize(entry));
  print_table(results);
  write_results(o, results);
  if (apps::run_plot_script("compare_connections.py", o.out / "metrics.jsonl", o.out / "loss.png"))
    apps::say("picture: {}\n", (o.out / "loss.png").string());
}

}  // namespace

int main(int argc, char** argv) {
  braid::platform::ignore_closed_pipes();  // training continues when the reader of stdout is gone
  return apps::run_main("compare_connections", [&] {
    run(parse(argc, argv));
    return 0;
  });
}

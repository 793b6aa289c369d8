// Where two runs of train_lm part: the step, by their ledgers; the op of that step and the element, by computing the
// step again on both sides. `compare_runs --help` lists its commands.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/core/files/file_system.h>
#include <braid/core/platform/process.h>

#include "../common/progress.h"
#include "../common/run_main.h"
#include "../common/step_record.h"
#include "../platform/process.h"
#include "../train_lm/replay.h"
#include "ledgers.h"
#include "record.h"

namespace braid::compare_runs {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string command;
  std::vector<fs::path> paths;
  std::int64_t step = 0;  ///< 0: the first that differs
  std::string isa;
  std::optional<std::size_t> keep;
};

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app(
      "Compares runs of train_lm --ledger.\n"
      "same RUN RUN: whether they have the same bits.\n"
      "part RUN RUN: the first step, op and element in which they differ; RUN FILE, with another machine's record.\n"
      "record RUN FILE --step N: writes the checksums of everything that the step computes.");
  app.add_option("command", o.command, "same, part or record")
      ->required()
      ->check(CLI::IsMember({"same", "part", "record"}));
  app.add_option("paths", o.paths, "folders of runs, and a file for record")->required()->expected(2);
  app.add_option("--step", o.step, "record: the step; part RUN RUN: this step in place of the first that differs")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--keep", o.keep, "record: also the elements of the tensor with this number, which part names");
  app.add_option("--isa", o.isa, "record: the instruction set to compute with (default: the run's)");
  apps::parse_command_line(app, argc, argv);
  check_value(o.command != "record" || o.step > 0, "record: needs --step");
  for (const char* flag : {"--keep", "--isa"})
    check_value(o.command == "record" || app.count(flag) == 0, "{}: has no effect on {}", flag, o.command);
  check_value(o.command != "same" || o.step == 0, "--step: has no effect on same");
  if (o.command == "record") apps::check_output_file("record", o.paths[1]);
  return o;
}

/// One of the things compared: a run, whose steps can be computed again, or a record of one.
class Side {
 public:
  explicit Side(fs::path path) : path_(std::move(path)), is_run_(fs::is_directory(path_)) {}

  const fs::path& path() const { return path_; }
  bool is_run() const { return is_run_; }
  nlohmann::json settings() const { return is_run_ ? train_lm::settings_of_run(path_) : read_record(path_).settings; }

  /// In a process of its own, because oneDNN keeps the instruction set of its first product.
  Record record(std::int64_t step, std::optional<std::size_t> keep = {}) const {
    if (!is_run_) return read_record(path_);
    const fs::path file = fs::temp_directory_path() / fmt::format("braid-record-{}", platform::process_id());
    std::vector<std::string> arguments{"record", path_.string(), file.string(), "--step", std::to_string(step)};
    if (keep) arguments.insert(arguments.end(), {"--keep", std::to_string(*keep)});
    std::string failure = platform::run_program(platform::program_file().string(), arguments);
    if (constexpr std::string_view kName = "compare_runs: "; failure.starts_with(kName)) failure.erase(0, kName.size());
    check<Error>(failure.empty(), "{}: step {} cannot be repeated: {}", path_.string(), step, failure);
    Record record = read_record(file);
    fs::remove(file);
    return record;
  }

 private:
  fs::path path_;
  bool is_run_;
};

int same(const Options& o) {
  const auto has_settings = [](const fs::path& folder) { return fs::exists(folder / "config.json"); };
  if (std::ranges::all_of(o.paths, has_settings))  // the ledger of another machine may be there alone
    say_different_settings(train_lm::settings_of_run(o.paths[0]), train_lm::settings_of_run(o.paths[1]));
  return first_step(o.paths[0], o.paths[1]) ? 1 : 0;
}

/// What two records of which all ops have the same bits have after them; lines begin with `where`. Returns the exit
/// code.
int say_after_ops(const Record& a, const Record& b, const std::string& where) {
  if (a.line == b.line) {
    apps::say("{}: everything has the same bits\n", where);
    return a.repeated && b.repeated ? 0 : 1;
  }
  std::string what = "clipping or the optimizer differs";
  if (first_part(a.line, b.line) != "parameters")
    what = "the sum over blocks differs";
  else if (a.learning_rate && b.learning_rate && *a.learning_rate != *b.learning_rate)
    what = fmt::format("the learning rate differs: {} against {}", *a.learning_rate, *b.learning_rate);
  apps::say("{}: all ops have the same bits; {}\n", where, what);
  return 1;
}

/// Whether the events of this index are of the same op.
bool computes_the_same(const Record& a, const Record& b, std::size_t at) {
  const auto identity = [](const apps::StepEvent& e) { return std::tie(e.op, e.backward, e.index, e.shape); };
  return at < a.events.size() && at < b.events.size() && identity(a.events[at]) == identity(b.events[at]);
}

/// Whether this event is the first because the texts differ: an embedding whose weights, an earlier event, are equal.
bool read_other_texts(const Record& a, const Record& b, std::size_t at) {
  return a.events[at].op == "embedding" && !a.events[at].backward &&
         a.settings.value("text_checksum", nlohmann::json()) != b.settings.value("text_checksum", nlohmann::json());
}

std::string described(const Record& record, std::size_t at) {
  return at < record.events.size() ? apps::describe(record.events, at) : "none";
}

int part(const Options& o) {
  const Side a(o.paths[0]), b(o.paths[1]);
  check_value(a.is_run(), "part: {} must be the folder of a run", a.path().string());
  say_different_settings(a.settings(), b.settings());
  check_value(b.is_run() || o.step == 0, "--step: {} is the record of one step", b.path().string());
  std::optional<std::int64_t> step = o.step;
  if (!b.is_run())
    step = read_record(b.path()).step;
  else if (o.step == 0)
    step = first_step(a.path(), b.path());
  if (!step) return 0;
  Record in_a = a.record(*step), in_b = b.record(*step);
  for (const auto& [side, record] : {std::pair(&a, &in_a), {&b, &in_b}})
    if (!record->repeated)
      apps::say("{}: step {} computed again has other bits than its ledger: what happened there did not repeat\n",
                side->path().string(), *step);
  const bool repeated = in_a.repeated && in_b.repeated;  // if not, what follows is not about the runs
  const std::string where = fmt::format("step {}{}", *step, repeated ? "" : " computed again");
  const std::optional<std::size_t> at = apps::first_difference(in_a.events, in_b.events);
  if (!at) return say_after_ops(in_a, in_b, where);
  if (!computes_the_same(in_a, in_b, *at)) {
    apps::say("{}: other ops from here on: {} against {}\n", where, described(in_a, *at), described(in_b, *at));
    return 1;
  }
  std::string element;
  if (b.is_run() || in_b.keep == at) {
    in_a = a.record(*step, at);
    if (b.is_run()) in_b = b.record(*step, at);
    element = ", " + apps::describe_element(in_a.kept, in_b.kept);
  }
  apps::say("{}: {}{}{}\n", where, apps::describe(in_a.events, *at), element,
            read_other_texts(in_a, in_b, *at) ? "; the windows of text differ there" : "");
  if (element.empty())
    apps::say("{}for the element, record the other side with --keep {}\n",
              in_b.keep ? fmt::format("the record has the elements of tensor {}; ", *in_b.keep) : "", *at);
  return 1;
}

int run(const Options& o) {
  if (o.command == "same") return same(o);
  if (o.command == "part") return part(o);
  write_record(o.paths[0], o.paths[1], o.step, o.isa, o.keep);
  return 0;
}

}  // namespace
}  // namespace braid::compare_runs

int main(int argc, char** argv) {
  using namespace braid::compare_runs;
  return braid::apps::run_main("compare_runs", [&] { return run(parse(argc, argv)); });
}

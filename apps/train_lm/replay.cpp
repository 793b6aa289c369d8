#include "replay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <braid/core/files/checksum.h>
#include <braid/core/utf8.h>

#include "../common/json_lines.h"
#include "../common/progress.h"
#include "../common/read_file.h"
#include "checkpoint.h"
#include "lines.h"
#include "starts.h"
#include "upcycling.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;

/// The flag of a setting in config.json, which has the same name; none for defaults and for what a flag cannot set.
void add_flag(const std::string& key, const nlohmann::json& value, std::vector<std::string>& line) {
  for (const char* other : {"architecture", "text_checksum", "tokenizer_checksum", "init_checksum", "started_in",
                            "git_commit", "machine", "starts"})
    if (key == other) return;
  if (value.is_null() || value == "" || value == false) return;
  std::string flag = "--" + key;
  std::ranges::replace(flag, '_', '-');
  line.push_back(flag);
  if (value != true) line.push_back(value.is_string() ? value.get<std::string>() : value.dump());
}

/// What bits depend on. Paths do not count, the checksums of texts do.
nlohmann::json that_changes_bits(nlohmann::json settings) {
  const bool portable = settings.value("bits", nlohmann::json()) == "portable";
  for (const auto& [key, name] : {std::pair("isa", "instruction set"),
                                  {"processor", "processor"},
                                  {"mhc_path", "BRAID_MHC_PATH"},
                                  {"compiler", "compiler"}}) {
    const bool counts = !portable || (key != std::string("isa") && key != std::string("processor"));
    if (const std::string value = of_machines(settings, key); counts && !value.empty()) settings[name] = value;
  }
  for (const char* key :
       {"text", "tokenizer", "started_in", "eval_every", "telemetry_every", "check_gradients", "machine", "starts"})
    settings.erase(key);
  return settings;
}

std::vector<nlohmann::json> lines_of(const fs::path& path) {
  std::istringstream file(apps::read_file(path));
  std::vector<nlohmann::json> lines;
  for (std::string text; std::getline(file, text) && !file.eof();) {
    lines.push_back(apps::parse_json(fmt::format("{}: line {}", path.string(), lines.size() + 1), text));
    check<FileError>(lines.back().is_object(), "{}: line {} must be an object", path.string(), lines.size());
  }
  return lines;
}

/// The learning rates of a run, of which a --resume with other --steps or --warmup changed the schedule; `otherwise` of
/// steps that metrics.jsonl does not have.
nn::Schedule rates_of(const fs::path& folder, nn::Schedule otherwise) {
  const fs::path path = folder / "metrics.jsonl";
  std::map<std::int64_t, double> rates;
  if (fs::exists(path))
    for (const nlohmann::json& line : lines_of(path))
      if (line.value("learning_rate", nlohmann::json()).is_number())
        rates[line.value("step", std::int64_t{0})] = line["learning_rate"];
  return [rates = std::move(rates), otherwise = std::move(otherwise)](std::int64_t done) {
    const auto found = rates.find(done + 1);
    return found == rates.end() ? otherwise(done) : found->second;
  };
}

/// As JSON, without quotes, in part if it is long.
std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? excerpt(value.get<std::string>()) : shortened(value.dump());
}

std::vector<std::string> names_of(const apps::Model& model, const apps::TrainerSettings& settings) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const Var&) { names.push_back(name); };
  if (const std::optional<nn::Subset> part = apps::trained_part(model, settings))
    for_each_param(*part, add);
  else
    for_each_param(model, add);
  return names;
}

}  // namespace

nlohmann::json settings_of_run(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  auto json = apps::parse_json(path.string(), apps::read_file(path));
  check<FileError>(json.is_object(), "{}: must be the configuration of a run", path.string());
  const auto path_in = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  for (const char* key : {"text", "tokenizer", "init"}) {
    const fs::path given = path_in(key), there = path_in("started_in") / given;
    std::error_code no_path;
    if (!given.empty() && !fs::exists(given, no_path) && fs::exists(there, no_path)) json[key] = there.string();
  }
  return json;
}

std::vector<std::string> different_settings(const nlohmann::json& a, const nlohmann::json& b) {
  const nlohmann::json in_a = that_changes_bits(a), in_b = that_changes_bits(b);
  std::vector<std::string> different;
  for (const auto& [key, value] : in_a.items())
    if (in_b.contains(key) && in_b[key] != value)  // older runs have fewer
      different.push_back(fmt::format("{} {} and {}", excerpt(key), text_of(value), text_of(in_b[key])));
  return different;
}

Config config_of_run(const fs::path& folder) {
  const nlohmann::json settings = settings_of_run(folder);
  std::vector<std::string> line{"train_lm", "--resume", "--out", folder.string()};
  for (const auto& [key, value] : settings.items()) add_flag(key, value, line);
  std::vector<char*> arguments;
  for (std::string& argument : line) arguments.push_back(argument.data());
  return parse(static_cast<int>(arguments.size()), arguments.data());
}

Ledger ledger_of(const fs::path& folder) {
  const fs::path path = folder / "ledger.jsonl";
  check<FileError>(fs::exists(folder), "{}: there is no such folder", folder.string());
  check<FileError>(fs::exists(path), "{}: there is none: the run was not trained with --ledger", path.string());
  Ledger ledger;
  std::int64_t number = 0;
  for (nlohmann::json& line : lines_of(path)) {
    ++number;
    const auto step = line.value("step", std::int64_t{0});
    check<FileError>(step > 0, "{}: line {} must have a step", path.string(), number);
    ledger[step] = std::move(line);
  }
  return ledger;
}

Replay replay(Config config, std::int64_t step, std::optional<std::size_t> kept) {
  check_value(step >= 1 && step <= config.training.steps, "--step: must be a step of the run, 1 to {}, but is {}",
              config.training.steps, step);
  set_matmul_precision(config.training.matmul_precision);
  const BitsScope bits(config.training.bits);
  const apps::Corpus corpus = read_corpus(config);
  const nlohmann::json settings = settings_of_run(config.out);
  for (const auto& [option, file, now] : {std::tuple("text", &config.text, corpus.checksum()),
                                          {"tokenizer", &config.tokenizer, corpus.tokenizer_checksum()}})
    check_value(settings.value(option + std::string("_checksum"), now) == now,
                "--{}: {} is not what the run was trained with", option, file->empty() ? "the default" : *file);
  apps::Trainer trainer(config.training, corpus);
  if (auto state = load_checkpoint_before(config.out, step, trainer.state(), config, corpus)) {
    trainer.restore(std::move(*state));
  } else if (!config.init.empty()) {  // config.origin is the run itself once it has a checkpoint
    config.origin = std::make_shared<SavedRun>(load_origin(config.init));
    const std::string now = checksum(config.origin->parameters, {});
    check_value(settings.value("init_checksum", now) == now, "--init: {} is not what the run started from",
                config.init.string());
    start_from_origin(config, corpus, trainer);
  }
  const bool portable = config.training.bits == Bits::portable;
  for (std::int64_t before = trainer.step() + 1; before < step; ++before)
    check_value(computed_alike(settings, before, step, portable),
                "step {} was computed with another instruction set or BRAID_MHC_PATH than step {}, and no checkpoint "
                "between them is left",
                before, step);
  trainer.learning_rate() = rates_of(config.out, trainer.learning_rate());
  apps::Progress progress("step", step, trainer.step());
  while (trainer.step() + 1 < step) {
    trainer.train_step();
    progress.update(trainer.step(), config.out.string());
  }
  Replay now{.record = apps::StepRecord(names_of(trainer.model(), config.training), kept), .line = {}};
  now.line = ledger_line(trainer, trainer.train_step({.gradients = true, .probe = &now.record}));
  progress.finish();
  now.learning_rate = apps::as_optimizer(trainer.state().optimizer).lr();
  const Ledger ledger = ledger_of(config.out);
  now.repeated = ledger.contains(step) && ledger.at(step) == now.line;
  return now;
}

}  // namespace braid::train_lm

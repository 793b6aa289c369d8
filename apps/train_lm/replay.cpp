#include "replay.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../common/json_lines.h"
#include "../common/read_file.h"
#include "checkpoint.h"
#include "lines.h"
#include "upcycling.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;

/// The flag of a setting in config.json, which has the same name; none for defaults and for what a flag cannot set.
void add_flag(const std::string& key, const nlohmann::json& value, std::vector<std::string>& line) {
  for (const char* other : {"architecture", "text_checksum", "tokenizer_checksum", "git_commit", "machine"})
    if (key == other) return;
  if (value.is_null() || value == "" || value == false) return;
  std::string flag = "--" + key;
  std::ranges::replace(flag, '_', '-');
  line.push_back(flag);
  if (value != true) line.push_back(value.is_string() ? value.get<std::string>() : value.dump());
}

}  // namespace

Config config_of_run(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  const auto json = apps::parse_json(path.string(), apps::read_file(path));
  check<FileError>(json.is_object(), "{}: must be the configuration of a run", path.string());
  std::vector<std::string> line{"train_lm", "--resume", "--out", folder.string()};
  for (const auto& [key, value] : json.items()) add_flag(key, value, line);
  std::vector<char*> arguments;
  for (std::string& argument : line) arguments.push_back(argument.data());
  return parse(static_cast<int>(arguments.size()), arguments.data());
}

std::vector<nlohmann::json> ledger_of(const fs::path& folder) {
  const fs::path path = folder / "ledger.jsonl";
  check<FileError>(fs::exists(path), "{}: there is none: the run was not trained with --ledger", path.string());
  std::istringstream file(apps::read_file(path));
  std::vector<nlohmann::json> lines;
  for (std::string text; std::getline(file, text) && !file.eof();) {
    lines.push_back(apps::parse_json(fmt::format("{}: line {}", path.string(), lines.size() + 1), text));
    check<FileError>(lines.back().is_object() && lines.back().value("step", std::int64_t{0}) > 0,
                     "{}: line {} must be an object with a step", path.string(), lines.size());
  }
  return lines;
}

bool replay(Config config, std::int64_t step, apps::StepRecord& record) {
  check_value(step >= 1 && step <= config.training.steps, "--step: must be a step of the run, 1 to {}, but is {}",
              config.training.steps, step);
  set_matmul_precision(config.training.matmul_precision);
  const BitsScope bits(config.training.bits);
  const apps::Corpus corpus = apps::read_corpus(config.text, config.tokenizer, config.training.context);
  apps::Trainer trainer(config.training, corpus);
  if (auto state = load_checkpoint_before(config.out, step, trainer.state(), config, corpus)) {
    trainer.restore(std::move(*state));
  } else if (!config.init.empty()) {  // config.origin is the run itself once it has a checkpoint
    config.origin = std::make_shared<SavedRun>(load_origin(config.init));
    start_from_origin(config, corpus, trainer);
  }
  while (trainer.step() + 1 < step) trainer.train_step();
  const nlohmann::ordered_json now = ledger_line(trainer, trainer.train_step({.gradients = true, .probe = &record}));
  return std::ranges::count(ledger_of(config.out), nlohmann::json(now)) > 0;
}

}  // namespace braid::train_lm

#include "record.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <braid/autograd/composed.h>
#include <braid/core/files/safetensors.h>
#include <braid/core/instruction_set.h>

#include "../common/json_lines.h"
#include "../common/parse_number.h"
#include "../common/run_info.h"
#include "../train_lm/replay.h"
#include "../train_lm/starts.h"

namespace braid::compare_runs {

namespace fs = std::filesystem;
using apps::StepEvent;

void write_record(const fs::path& run, const fs::path& file, std::int64_t step, std::string isa,
                  std::optional<std::size_t> keep) {
  nlohmann::json settings = train_lm::settings_of_run(run);
  const train_lm::Config config = train_lm::config_of_run(run);
  nlohmann::json machine = train_lm::machine_of_step(settings, step);
  const bool is_other = !isa.empty() && isa != machine.value("isa", "");
  if (is_other) {  // the settings of the record
    machine["isa"] = isa;
    settings["machine"] = machine;
    settings.erase("starts");
  }
  if (isa.empty() && config.training.bits == Bits::fast) isa = machine.value("isa", "");
  if (!isa.empty()) {
    const auto known = std::ranges::find(instruction_sets(), isa, [](auto set) { return std::string(name(set)); });
    check_value(known != instruction_sets().end() || !is_other, "--isa: this processor does not have {}", isa);
    check_value(known != instruction_sets().end(),
                "{}: step {} was computed with {}, which this processor lacks: record it on one that has it",
                run.string(), step, isa);
    set_instruction_set(*known);
  }
  const std::string path = machine.value("mhc_path", apps::mhc_path());
  check_value(path == "reference" || apps::mhc_path() == "fused",
              "{}: step {} was computed without BRAID_MHC_PATH=reference: record it without it, too", run.string(),
              step);
  std::optional<Composed> composed;
  if (path == "reference") composed.emplace(Composed::Ops::connections);
  const auto [record, line, repeated, learning_rate] = train_lm::replay(config, step, keep);
  nlohmann::json events = nlohmann::json::array();
  for (const StepEvent& event : record.events()) events.emplace_back(apps::to_json(event));
  std::map<std::string, Tensor> tensors;
  if (record.kept().defined()) tensors.emplace("kept", record.kept());
  save_safetensors(file, tensors,
                   {{"step", std::to_string(step)},
                    {"keep", nlohmann::json(keep.value_or(0)).dump()},
                    {"repeated", repeated || is_other ? "true" : "false"},
                    {"line", line.dump()},
                    {"learning_rate", nlohmann::json(learning_rate).dump()},
                    {"settings", settings.dump()},
                    {"events", events.dump()}});
}

Record read_record(const fs::path& path) {
  const std::string what = path.string();
  SafetensorsFile file;
  try {
    file = load_safetensors(path);
  } catch (const UnreadableFile&) {
    throw;
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}: is no record of compare_runs: {}", what, error.what()));
  }
  Record record;
  record.step = apps::parse_number<std::int64_t>(file.metadata["step"]).value_or(0);
  const auto json = [&](const char* key) { return apps::parse_json(what + ": " + key, file.metadata[key]); };
  const nlohmann::json events = json("events");
  record.line = json("line");
  record.settings = json("settings");
  check<FileError>(record.step > 0 && events.is_array() && record.line.is_object() && record.settings.is_object(),
                   "{}: must be what `record` of this version writes", what);
  for (const auto& event : events) record.events.push_back(apps::step_event(what, event));
  record.learning_rate = apps::parse_number<double>(file.metadata["learning_rate"]);
  record.repeated = file.metadata["repeated"] == "true";
  if (file.tensors.contains("kept")) {
    record.kept = file.tensors["kept"];
    record.keep = apps::parse_number<std::size_t>(file.metadata["keep"]);
  }
  return record;
}

}  // namespace braid::compare_runs

#include "starts.h"

#include <array>

#include <fmt/format.h>

#include <braid/core/error.h>

#include "../common/json_lines.h"
#include "../common/read_file.h"
#include "../common/run_info.h"

namespace braid::train_lm {
namespace {

/// What bits depend on.
constexpr std::array kKept = {"processor", "isa", "mhc_path", "compiler"};

nlohmann::json kept(const nlohmann::json& machine) {
  nlohmann::json start = nlohmann::json::object();
  for (const char* key : kKept)
    if (machine.contains(key) && machine[key].is_string()) start[key] = machine[key];
  return start;
}

/// Of an older run, which has none, the machine that started it last.
nlohmann::json starts_of(const nlohmann::json& settings) {
  nlohmann::json starts = nlohmann::json::array();
  if (!settings.is_object()) return starts;
  if (!settings.contains("starts")) {
    if (settings.contains("machine") && settings["machine"].is_object()) starts.push_back(kept(settings["machine"]));
    for (nlohmann::json& start : starts) start["step"] = 0;
    return starts;
  }
  for (const nlohmann::json& start : settings["starts"])
    if (start.is_object() && start.value("step", nlohmann::json()).is_number_integer()) {
      starts.push_back(kept(start));
      starts.back()["step"] = start["step"];
    }
  return starts;
}

}  // namespace

nlohmann::json earlier_settings(const std::filesystem::path& config) {
  try {
    if (std::filesystem::exists(config)) {
      auto earlier = apps::parse_json(config.string(), apps::read_file(config));
      if (earlier.is_object()) return earlier;
    }
  } catch (const FileError&) {  // the run itself is in its checkpoint
  }
  return nlohmann::json::object();
}

nlohmann::ordered_json starts_with_this(const nlohmann::json& earlier, std::int64_t step) {
  nlohmann::json starts = nlohmann::json::array(), now = kept(nlohmann::json(apps::machine_info())), last;
  for (nlohmann::json& start : starts_of(earlier))
    if (start["step"] < step) starts.push_back(std::move(start));
  if (!starts.empty()) last = kept(starts.back());
  if (last != now) {
    now["step"] = step;
    starts.push_back(std::move(now));
  }
  return starts;
}

nlohmann::json machine_of_step(const nlohmann::json& settings, std::int64_t step) {
  nlohmann::json machine = nlohmann::json::object();
  for (const nlohmann::json& start : starts_of(settings))
    if (start["step"] < step) machine = start;
  return machine;
}

bool computed_alike(const nlohmann::json& settings, std::int64_t step, std::int64_t other, bool portable) {
  const nlohmann::json a = machine_of_step(settings, step), b = machine_of_step(settings, other);
  return a.value("mhc_path", "") == b.value("mhc_path", "") && (portable || a.value("isa", "") == b.value("isa", ""));
}

std::string of_machines(const nlohmann::json& settings, const std::string& key) {
  std::string all, last;
  for (const nlohmann::json& start : starts_of(settings)) {
    const std::string now = start.value(key, "");
    if (now == last) continue;
    all += all.empty() ? now : fmt::format(", after step {} {}", start["step"].get<std::int64_t>(), now);
    last = now;
  }
  return all;
}

}  // namespace braid::train_lm

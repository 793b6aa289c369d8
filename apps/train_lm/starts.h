#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace braid::train_lm {

/// The settings of a run in a config.json; an empty object if the file is missing or damaged.
nlohmann::json earlier_settings(const std::filesystem::path& config);

/// The `starts` of a config.json: the machines that computed a run, each with the `step` after which it went on. This
/// process goes on after `step`, and `earlier` are the settings of the processes before.
nlohmann::ordered_json starts_with_this(const nlohmann::json& earlier, std::int64_t step);

/// The machine in `settings`, a config.json, that computed a step; an empty object if that is not known.
nlohmann::json machine_of_step(const nlohmann::json& settings, std::int64_t step);

/// Whether one process can repeat two steps: they were computed with the same BRAID_MHC_PATH and, unless bits are
/// portable, the same instruction set.
bool computed_alike(const nlohmann::json& settings, std::int64_t step, std::int64_t other, bool portable);

/// An entry of each machine in `settings`, as `avx512, after step 20 avx2`; empty if it is not known.
std::string of_machines(const nlohmann::json& settings, const std::string& key);

}  // namespace braid::train_lm

#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace braid::compare_runs {

/// Prints in what that changes bits two config.json differ, and the first line in which their texts do, as those files
/// are now.
void say_different_settings(const nlohmann::json& a, const nlohmann::json& b);

/// The first part of a ledger's line in which two differ.
std::string first_part(const nlohmann::json& a, const nlohmann::json& b);

/// The first step whose lines differ in the ledgers of two runs; nullopt when all steps that both have are equal, of
/// which the last is printed. Throws FileError when a run has no ledger.
std::optional<std::int64_t> first_step(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace braid::compare_runs

#pragma once
#include <filesystem>
#include <string>

#include "config.h"

namespace braid::stability {

/// The results folder and the paths in it.
struct Folder {
  std::filesystem::path path;
  std::filesystem::path config() const { return path / "config.toml"; }
  std::filesystem::path info() const { return path / "run_info.json"; }
  std::filesystem::path runs() const { return path / "runs"; }
  std::filesystem::path run(const std::string& id) const { return runs() / (id + ".jsonl"); }
  std::filesystem::path figures() const { return path / "figures"; }
  std::filesystem::path summary() const { return path / "summary.csv"; }
  std::filesystem::path report() const { return path / "report.md"; }
};

/// Makes the folder, or continues one that was made with the same configuration. Throws ValueError, having written
/// nothing, when it holds anything else.
Folder open_folder(const std::filesystem::path& path, const Config& config);

/// Call after locking the folder: writes the configuration and removes files that a killed run left half-written.
void write_config(const Folder& folder, const Config& config);

/// Adds this start of the program to run_info.json: command, time, commit and machine. A folder that was continued has
/// several entries.
void add_session(const Folder& folder, const std::string& command);

}  // namespace braid::stability

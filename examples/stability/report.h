#pragma once
#include <span>
#include <string>

#include "results.h"

namespace braid::stability {

/// Results as Markdown: for each task a table of the shown learning rate, what it says about the connections, the
/// sweep, then the ablations.
std::string tables(const Config& config, std::span<const Result> results);

/// Writes report.md: command, machine and commit, definitions, tables(), and the figures that are there.
void write_report(const Folder& folder, const Config& config, std::span<const Result> results);

}  // namespace braid::stability

#pragma once
#include <span>

#include "results.h"

namespace braid::stability {

/// Writes report.md: command, machine and commit, definitions, tables and the figures that exist.
void write_report(const Folder& folder, const Config& config, std::span<const Result> results);

}  // namespace braid::stability

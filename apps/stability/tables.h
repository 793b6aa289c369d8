#pragma once
#include <span>
#include <string>

#include "results.h"

namespace braid::stability {

// Results as Markdown.

/// For each task the modes at the shown learning rate, statements about them, and the numbers of runs that diverged.
std::string overview(const Config& config, std::span<const Result> results);

/// Losses and gains at every learning rate, and the ablations.
std::string details(const Config& config, std::span<const Result> results);

}  // namespace braid::stability

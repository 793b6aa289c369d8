#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config.h"
#include "folder.h"

namespace braid::stability {

/// The result of a run. Gains are of all its connections together, at the last step that was probed.
struct Result {
  RunSettings run;
  bool diverged;
  std::string reason;  ///< of divergence; empty if the run did not diverge
  std::int64_t steps;
  double first_loss, final_loss;  ///< final: the mean of the last tenth; may be NaN
  double forward_gain, backward_gain, row_error, column_error;
  std::optional<double> similarity = {};  ///< none for one stream
};

/// The results of the runs whose files exist, in the order of `plan`. Throws FileError on a damaged file.
std::vector<Result> read_results(const Folder& folder, std::span<const RunSettings> plan);

/// Writes a CSV file with one line per run.
void write_summary(const std::filesystem::path& file, std::span<const Result> results);

}  // namespace braid::stability

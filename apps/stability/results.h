#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config.h"
#include "folder.h"

namespace braid::stability {

/// How a run ended. Gains are of all its connections together, at the last step that was probed.
struct Result {
  RunSettings run;
  bool diverged;
  std::string reason;  ///< empty when trained
  std::int64_t steps;
  double first_loss, final_loss;  ///< the mean of the last tenth; NaN where it was
  double forward_gain, backward_gain, row_error, column_error;
  std::optional<double> similarity = {};  ///< none for one stream
};

/// Of the runs whose files are there, in the order of `plan`. Throws FileError on a damaged file.
std::vector<Result> read_results(const Folder& folder, std::span<const RunSettings> plan);

/// A line a run.
void write_summary(const std::filesystem::path& file, std::span<const Result> results);

}  // namespace braid::stability

#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <braid/core/tensor.h>

#include "../common/step_record.h"

namespace braid::compare_runs {

/// What one side computed in a step.
struct Record {
  std::int64_t step = 0;
  bool repeated = true;                 ///< it has the bits of the run's ledger
  nlohmann::json line;                  ///< as in the ledger
  std::optional<double> learning_rate;  ///< not in older records
  nlohmann::json settings;
  std::vector<apps::StepEvent> events;
  std::optional<std::size_t> keep;  ///< the event whose elements are `kept`
  Tensor kept;
};

/// Computes a step of a run again, with the instruction set `isa` or, if it is empty, with the run's, and writes its
/// record to a file, with the elements of the tensor `keep`. Throws ValueError when this process cannot compute as the
/// run did.
void write_record(const std::filesystem::path& run, const std::filesystem::path& file, std::int64_t step,
                  std::string isa, std::optional<std::size_t> keep);

/// Throws FileError when the file is no record.
Record read_record(const std::filesystem::path& path);

}  // namespace braid::compare_runs

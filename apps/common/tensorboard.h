#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/files/file_system.h>

namespace braid::examples {

/// Numbers by the names under which TensorBoard shows them: `loss/train`.
using Scalars = std::vector<std::pair<std::string, double>>;

/// The record of an event file that tells the scalars of a step: a protobuf message between its length and checksums.
std::string event_record(std::int64_t step, const Scalars& scalars, double wall_time);

/// A file of events for `tensorboard --logdir`; the system has each step before the next is written.
class EventFile {
 public:
  /// Continues the file with the events that it holds, or starts it. Throws FileError when it cannot be written.
  explicit EventFile(const std::filesystem::path& path);

  void append(std::int64_t step, const Scalars& scalars);

 private:
  OutputFile file_;
};

/// The records of a file whose steps are not past `step`, without a last one that a killed program left unfinished.
/// Throws FileError when the file cannot be read, and naming the byte where a record is damaged.
std::string events_until(const std::filesystem::path& path, std::int64_t step);

}  // namespace braid::examples

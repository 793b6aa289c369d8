#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/files/file_system.h>

namespace braid::apps {

/// Numbers by the names under which TensorBoard shows them: `loss/train`.
using Scalars = std::vector<std::pair<std::string, double>>;

/// A record of an event file with the scalars of a step: a protobuf message between its length and checksums.
std::string event_record(std::int64_t step, const Scalars& scalars, double wall_time);

/// A file of events for `tensorboard --logdir`. Each step is passed to the system at once.
class EventFile {
 public:
  /// Opens the file to append to it, or creates it. Throws FileError when it cannot be written.
  explicit EventFile(const std::filesystem::path& path);

  void append(std::int64_t step, const Scalars& scalars);

 private:
  OutputFile file_;
};

/// The records of a file whose steps are at most `step`, without an incomplete last one, which a killed program leaves.
/// Throws FileError when the file cannot be read or a record is damaged; the message has the byte where it starts.
std::string events_until(const std::filesystem::path& path, std::int64_t step);

}  // namespace braid::apps

#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/files/file_system.h>

namespace braid::nn {

/// Numbers by the names under which TensorBoard shows them: `loss/train`.
using Scalars = std::vector<std::pair<std::string, double>>;

/// A record of an event file with the scalars of a step: a protobuf message between its length and checksums. The
/// scalars are stored as f32, `wall_time` is in seconds since 1970.
std::string event_record(std::int64_t step, const Scalars& scalars, double wall_time);

/// A file of events for `tensorboard --logdir FOLDER`, which looks for names with `tfevents`:
///
///     nn::EventFile events("runs/first/events.out.tfevents.braid");
///     events.append(step, {{"loss/train", loss}, {"gradient_norm", norm}});
///
/// Each step is passed to the system at once.
class EventFile {
 public:
  /// Opens the file to append to it, or creates it. Throws FileError when it cannot be written.
  explicit EventFile(const std::filesystem::path& path);

  /// Adds the scalars of a step with the current time. Throws FileError when they cannot be written.
  void append(std::int64_t step, const Scalars& scalars);

 private:
  OutputFile file_;
};

/// The records of a file whose steps are at most `step`, without an incomplete last one, which a killed program leaves.
/// A run that resumes at that step replaces the file by these. Does not trust the file: throws FileError when it cannot
/// be read or a record is damaged; the message has the byte where it starts.
std::string events_until(const std::filesystem::path& path, std::int64_t step);

}  // namespace braid::nn

#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/core/files/file_system.h>

namespace braid::nn {

/// Numbers by the names under which TensorBoard shows them: `loss/train`.
using Scalars = std::vector<std::pair<std::string, double>>;

/// A record of an event file with the scalars of a step: a protobuf message between its length and checksums. The
/// scalars are stored as f32, `wall_time` is in seconds since 1970.
std::string event_record(std::int64_t step, const Scalars& scalars, double wall_time);

/// The checksum of a record's length and of its message: CRC-32C, masked, since the data around it has checksums too.
std::uint32_t record_checksum(std::string_view bytes);

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

}  // namespace braid::nn

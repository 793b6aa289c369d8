#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace braid::apps {

/// The records of a TensorBoard file whose steps are at most `step`, without an incomplete last one, which a killed
/// program leaves. A run that resumes at that step replaces the file by these. Does not trust the file: throws
/// FileError when it cannot be read or a record is damaged; the message has the byte where it starts.
std::string events_until(const std::filesystem::path& path, std::int64_t step);

}  // namespace braid::apps

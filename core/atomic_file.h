#pragma once
#include <filesystem>
#include <functional>
#include <iosfwd>

namespace braid {

/// Replaces the file at `path` by what `write` puts into the stream, so that a reader, a crash or a power cut sees
/// the old file or the new one, never a part: writes `path` + ".tmp", fsyncs it, renames it, fsyncs the folder.
/// On failure the old file stays and the temporary is removed. One writer a path at a time.
/// Throws FileError, also when `path` exists and is no regular file, and whatever `write` throws.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

}  // namespace braid

#pragma once
#include <filesystem>
#include <functional>
#include <iosfwd>

namespace braid {

/// Replaces the file at `path` by what `write` puts into the stream, so that after a crash or a power cut, and to every
/// reader, it is the old file or the new one, never a part: writes a temporary file beside it, fsyncs it, renames it,
/// fsyncs the folder. The temporary, `path` + ".<16 hex digits>.tmp", is always a new file and is removed on failure; a
/// link at `path` is replaced, not followed. If several threads or processes write at once, the last rename wins.
/// Throws FileError naming `path`, also if it exists and is not a regular file, and whatever `write` throws. The old
/// file is then unchanged, unless the folder's fsync failed: the new file is in place, but a power cut might undo that.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

/// Removes the temporary files of write_file_atomically that killed processes left in `folder`. Only for use when no
/// other process writes there. Throws FileError if the folder cannot be read.
void remove_temporary_files(const std::filesystem::path& folder);

}  // namespace braid

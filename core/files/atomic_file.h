#pragma once
#include <filesystem>
#include <functional>
#include <iosfwd>

namespace braid {

/// Replaces the file at `path` by what `write` puts into the stream, so that a reader, a crash or a power cut sees
/// the old file or the new one, never a part: writes a temporary file beside it, fsyncs it, renames it, fsyncs the
/// folder. The temporary, `path` + ".<16 hex digits>.tmp", is always a new file and removed on failure; a link at
/// `path` is replaced, not followed. Several may write at once: the last one stays. Throws FileError naming `path`,
/// also when it exists and is no regular file, and whatever `write` throws. Then the old file is still there; only when
/// the folder's fsync failed is it the new one, which a power cut might undo.
void write_file_atomically(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

/// Removes the temporaries of write_file_atomically that killed processes left in `folder`. For who knows that nobody
/// else writes there.
void remove_temporary_files(const std::filesystem::path& folder);

}  // namespace braid

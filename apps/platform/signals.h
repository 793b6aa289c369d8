#pragma once

namespace braid::platform {

/// From now on, writing to a pipe without a reader is an error of that call and no longer ends the program.
void ignore_closed_pipes();
/// The same for writing beyond the limit of a file's size.
void ignore_file_size_limit();

}  // namespace braid::platform

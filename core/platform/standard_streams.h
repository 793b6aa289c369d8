#pragma once
#include <string_view>

namespace braid::platform {

/// Discards what is written to a stream from now on.
void discard_output(int stream);
/// Another number for stderr, at least 10, which programs that are started do not inherit.
int duplicate_of_stderr();
/// Writes without a buffer, as far as possible, and allocates nothing.
void write_to_stderr(std::string_view text);

}  // namespace braid::platform

#pragma once

namespace braid::platform {

inline constexpr int kStdout = 1, kStderr = 2;

bool stdout_is_terminal();
/// Whether stdout is a pipe whose reader has closed it.
bool stdout_has_no_reader();
/// Opens the null device for standard streams that are closed: the next file would take their number.
void reserve_standard_streams();

}  // namespace braid::platform

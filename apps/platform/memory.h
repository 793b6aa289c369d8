#pragma once
#include <cstdint>

namespace braid::platform {

/// The bytes that the system, the container and the limits of the process leave free, as far as they are known;
/// infinity if nothing is.
double available_bytes();
/// The most memory that the process has had, in bytes.
std::int64_t peak_bytes();

}  // namespace braid::platform

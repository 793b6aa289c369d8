#pragma once
#include <cstddef>
#include <cstdint>

namespace braid::platform {

/// Asks the system for huge pages behind a block. A hint: nothing changes where it cannot be followed.
void prefer_huge_pages(void* block, std::size_t bytes);
/// The bytes that the system, the container and the limits of the process leave free, as far as they are known;
/// infinity if nothing is.
double available_bytes();
/// The most memory that the process has had, in bytes.
std::int64_t peak_bytes();

}  // namespace braid::platform

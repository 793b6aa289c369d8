#pragma once
#include <cstddef>

namespace braid::platform {

/// Asks the system for huge pages behind a block. A hint: nothing changes where it cannot be followed.
void prefer_huge_pages(void* block, std::size_t bytes);

}  // namespace braid::platform

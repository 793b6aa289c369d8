#include <braid/core/platform/memory.h>

#include <sys/mman.h>

namespace braid::platform {

void prefer_huge_pages([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  madvise(block, bytes, MADV_HUGEPAGE);
#endif
}

}  // namespace braid::platform

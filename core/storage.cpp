#include <braid/core/storage.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include <braid/core/platform/process.h>

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (void)(address), (void)(size)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (void)(address), (void)(size)
#endif

namespace braid {
namespace {

constexpr std::size_t kHugePage = 2 << 20;

/// Large blocks start at a huge page: fewer address translations make matrix products 5 to 15 % faster.
std::align_val_t alignment(std::size_t capacity) { return std::align_val_t{capacity < kHugePage ? 64 : kHugePage}; }

std::byte* allocate_from_system(std::size_t capacity) {
  auto* block = static_cast<std::byte*>(::operator new(capacity, alignment(capacity)));
  if (capacity >= kHugePage) platform::prefer_huge_pages(block, capacity);
  return block;
}

/// Rounds to few distinct sizes, to reuse blocks often: multiples of 64 bytes, from 512 on eight per power of two.
std::size_t round_up(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(64, std::bit_floor(std::max<std::size_t>(bytes, 1)) / 8);
  return std::max<std::size_t>(64, (bytes + step - 1) / step * step);
}

/// A free block holds the pointer to the next one, so that freeing allocates nothing. AddressSanitizer takes its other
/// bytes for freed ones, so that it reports who still reads or writes them, as it does behind the bytes of a Storage;
/// to find leaks it follows the pointer.
struct FreeBlock {
  FreeBlock* next;

  static FreeBlock* push(std::byte* block, std::size_t capacity, FreeBlock* next) {
    ASAN_UNPOISON_MEMORY_REGION(block, sizeof(FreeBlock));
    auto* const pushed = new (block) FreeBlock{next};
    ASAN_POISON_MEMORY_REGION(block + sizeof(FreeBlock), capacity - sizeof(FreeBlock));
    return pushed;
  }
  static std::byte* pop(FreeBlock*& first, std::size_t capacity) {
    ASAN_UNPOISON_MEMORY_REGION(first, capacity);
    return reinterpret_cast<std::byte*>(std::exchange(first, first->next));
  }
};

class CachingAllocator {
 public:
  std::byte* allocate(std::size_t capacity) {
    const std::scoped_lock lock(mutex_);
    FreeBlock*& first = free_[capacity];
    std::byte* block;
    if (first == nullptr || BypassCache::active()) {
      block = allocate_or_make_room(capacity);
      ++stats_.system_allocations;
    } else {
      block = FreeBlock::pop(first, capacity);
      stats_.cached_bytes -= static_cast<std::int64_t>(capacity);
    }
    stats_.live_bytes += static_cast<std::int64_t>(capacity);
    stats_.total_bytes += static_cast<std::int64_t>(capacity);
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
    return block;
  }

  void deallocate(std::byte* block, std::size_t capacity) {
    const std::scoped_lock lock(mutex_);
    FreeBlock*& first = free_.find(capacity)->second;
    first = FreeBlock::push(block, capacity, first);
    stats_.live_bytes -= static_cast<std::int64_t>(capacity);
    stats_.cached_bytes += static_cast<std::int64_t>(capacity);
  }

  void release() {
    const std::scoped_lock lock(mutex_);
    release_locked();
  }

  MemoryStats stats() {
    const std::scoped_lock lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::scoped_lock lock(mutex_);
    stats_.peak_bytes = stats_.live_bytes;
  }

  /// Around a fork, so that the child does not inherit a lock that another thread holds.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::byte* allocate_or_make_room(std::size_t capacity) {
    try {
      return allocate_from_system(capacity);
    } catch (const std::bad_alloc&) {
      release_locked();
      return allocate_from_system(capacity);
    }
  }

  void release_locked() {
    for (auto& [capacity, first] : free_)
      while (first != nullptr) ::operator delete(FreeBlock::pop(first, capacity), alignment(capacity));
    stats_.cached_bytes = 0;
  }

  std::mutex mutex_;
  std::unordered_map<std::size_t, FreeBlock*> free_;  // by capacity; a capacity once used stays
  MemoryStats stats_;
};

CachingAllocator& allocator() {
  static auto* instance = new CachingAllocator;  // never destroyed: tensors with static lifetime may outlive it
  return *instance;
}

// Before main, since a fork while another thread makes the allocator must wait for it.
[[maybe_unused]] const bool registered =
    platform::at_fork([] { allocator().lock(); }, [] { allocator().unlock(); }, [] { allocator().unlock(); });

}  // namespace

Storage::Storage(std::size_t bytes) : data_(nullptr), capacity_(round_up(bytes)) {
  data_ = allocator().allocate(capacity_);
  ASAN_POISON_MEMORY_REGION(data_ + bytes, capacity_ - bytes);
}

Storage::~Storage() { allocator().deallocate(data_, capacity_); }

MemoryStats memory_stats() { return allocator().stats(); }
void reset_peak_memory() { allocator().reset_peak(); }
void release_cached_memory() { allocator().release(); }

}  // namespace braid

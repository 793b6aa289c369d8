#pragma once
#include <cstddef>
#include <cstdint>

#include <braid/core/scope.h>

namespace braid {

/// Counts of the caching allocator.
struct MemoryStats {
  std::int64_t live_bytes = 0;          ///< bytes of existing storages
  std::int64_t peak_bytes = 0;          ///< largest live_bytes since the last reset
  std::int64_t cached_bytes = 0;        ///< bytes that were freed and are kept for reuse
  std::int64_t total_bytes = 0;         ///< bytes of all storages so far, freed ones included
  std::int64_t system_allocations = 0;  ///< allocations that the cache could not serve
};

/// The counts of this process.
MemoryStats memory_stats();
/// Resets peak_bytes to live_bytes.
void reset_peak_memory();
/// Returns cached blocks to the system.
void release_cached_memory();

/// While one is alive, the system allocates the storages that this thread creates. For tensors that outlive the
/// training step that creates them, such as an optimizer's moments: from the cache they would take blocks that every
/// later step needs.
class BypassCache : public Scope<BypassCache> {};

/// A 64-byte aligned block from the caching allocator: freed blocks are kept by size and reused, so that training steps
/// after the first allocate nothing from the system. If the system is out of memory, all cached blocks are returned to
/// it before a second attempt.
class Storage {
 public:
  /// Throws std::bad_alloc.
  explicit Storage(std::size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() { return data_; }  ///< its first byte
  const std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  std::size_t capacity_;
};

}  // namespace braid

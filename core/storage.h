#pragma once
#include <cstddef>
#include <cstdint>

namespace braid {

/// What the caching allocator has done so far.
struct MemoryStats {
  std::int64_t live_bytes = 0;          ///< in storages that are alive
  std::int64_t peak_bytes = 0;          ///< largest live_bytes since the last reset
  std::int64_t cached_bytes = 0;        ///< freed by tensors, kept for reuse
  std::int64_t system_allocations = 0;  ///< requests that the cache could not serve
};

/// The counts of this process.
MemoryStats memory_stats();
/// Starts a new peak at the bytes that are live now.
void reset_peak_memory();
/// Gives cached blocks back to the system.
void release_cached_memory();

/// While one is alive, storages that this thread makes come fresh from the system. For tensors that outlive a training
/// step in which they are made, as an optimizer's moments: from the cache they would take blocks that every later step
/// needs.
class BypassCache {
 public:
  BypassCache();
  ~BypassCache();
  BypassCache(const BypassCache&) = delete;
  BypassCache& operator=(const BypassCache&) = delete;
};

/// A 64-byte aligned block from the caching allocator: freed blocks are kept by size and handed out again,
/// so that a training step allocates nothing new after the first. When the system has no more, all of them go back to
/// it before it is asked once more.
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

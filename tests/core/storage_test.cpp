#include <braid/core/storage.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/tensor.h>
#include <tests/failing_allocations.h>

namespace braid::storage_test {
namespace {

TEST(Storage, IsAlignedTo64Bytes) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 1000, 100000}) {
    const Storage storage(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.data()) % 64, 0U) << bytes;
  }
}

TEST(Storage, OfTwoMebibytesOrMoreBeginsAtAHugePage) {
  for (const std::size_t bytes : {std::size_t{1} << 21, std::size_t{5} << 20}) {
    const Storage storage(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.data()) % (1U << 21), 0U) << bytes;
  }
}

TEST(Storage, HasFewSizesWhoseBytesAreAllCounted) {
  // Multiples of 64 bytes, above 512 bytes eight sizes per power of two.
  const std::vector<std::pair<std::size_t, int>> sizes = {{0, 64},    {1, 64},    {64, 64},     {65, 128},
                                                          {512, 512}, {513, 576}, {1025, 1152}, {2000, 2048}};
  for (const auto& [bytes, expected] : sizes) {
    release_cached_memory();
    const MemoryStats before = memory_stats();
    {
      const Storage first(bytes), second(bytes);
      EXPECT_EQ(memory_stats().live_bytes, before.live_bytes + 2 * expected) << bytes;
    }
    EXPECT_EQ(memory_stats().cached_bytes, 2 * expected) << bytes;
    EXPECT_EQ(memory_stats().total_bytes, before.total_bytes + 2 * expected) << bytes;
  }
}

TEST(Storage, HoldsTheBytesOfItsSizeApartFromOthers) {
  for (const std::size_t bytes : {1, 513, 1023, 1025, 5000, 70001}) {  // around the steps of the size classes
    Storage first(bytes), second(bytes);
    std::fill_n(first.data(), bytes, std::byte{1});
    std::fill_n(second.data(), bytes, std::byte{2});
    EXPECT_EQ(std::count(first.data(), first.data() + bytes, std::byte{1}), static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(std::count(second.data(), second.data() + bytes, std::byte{2}), static_cast<std::ptrdiff_t>(bytes));
  }
}

/// The allocations of a made-up training step.
void step() {
  std::vector<std::unique_ptr<Storage>> storages;
  for (std::size_t bytes = 10; bytes < 1'000'000; bytes = bytes * 3 / 2) {
    storages.push_back(std::make_unique<Storage>(bytes));
    storages.push_back(std::make_unique<Storage>(bytes));
  }
}

TEST(Storage, TheSecondRoundOfTheSameAllocationsAsksNothingOfTheSystem) {
  step();
  const MemoryStats before = memory_stats();
  step();
  const MemoryStats after = memory_stats();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.cached_bytes, before.cached_bytes);
}

TEST(Storage, BypassesTheCacheOnRequest) {
  step();
  const MemoryStats before = memory_stats();
  {
    const BypassCache fresh;
    const Storage storage(10);
    EXPECT_EQ(memory_stats().system_allocations, before.system_allocations + 1);
    EXPECT_EQ(memory_stats().cached_bytes, before.cached_bytes);
  }
  step();
  EXPECT_EQ(memory_stats().system_allocations, before.system_allocations + 1);
}

TEST(Storage, CountsLiveAndPeakBytes) {
  const Storage kept(1000);
  const std::int64_t live = memory_stats().live_bytes;
  reset_peak_memory();
  { const Storage storage(1 << 20); }
  EXPECT_EQ(memory_stats().live_bytes, live);
  EXPECT_EQ(memory_stats().peak_bytes, live + (1 << 20));
  reset_peak_memory();
  EXPECT_EQ(memory_stats().peak_bytes, live);
}

TEST(Storage, GivesCachedMemoryBackOnRequest) {
  { const Storage storage(1 << 20); }
  EXPECT_GE(memory_stats().cached_bytes, 1 << 20);
  release_cached_memory();
  EXPECT_EQ(memory_stats().cached_bytes, 0);
  const std::int64_t before = memory_stats().system_allocations;
  const Storage storage(1 << 20);
  EXPECT_EQ(memory_stats().system_allocations, before + 1);
}

TEST(Storage, GivesCachedMemoryBackBeforeItFails) {
  { const Storage storage(1 << 20); }
  EXPECT_GE(memory_stats().cached_bytes, 1 << 20);
  const MemoryStats before = memory_stats();
  EXPECT_THROW(Storage(std::size_t{1} << 62), std::bad_alloc);
  EXPECT_EQ(memory_stats().cached_bytes, 0);
  EXPECT_EQ(memory_stats().live_bytes, before.live_bytes);
  EXPECT_EQ(memory_stats().peak_bytes, before.peak_bytes);
  EXPECT_EQ(memory_stats().system_allocations, before.system_allocations);
}

TEST(Storage, AsksOnceMoreWithTheCacheGivenBack) {
  release_cached_memory();  // that of other tests may hold what this one asks for
  for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{1} << 22}) {
    {
      const Storage storage(bytes);
    }
    const FailingAllocations one({.after = 0, .times = 1});
    const Storage storage(2 * bytes);
    EXPECT_EQ(memory_stats().cached_bytes, 0);
    EXPECT_TRUE(one.failed());
  }
}

TEST(Storage, RoundingWastesAnEighthAtMost) {
  const std::int64_t live = memory_stats().live_bytes;
  for (std::size_t bytes = 512; bytes < 100'000; bytes += 777) {
    const Storage storage(bytes);
    const auto used = static_cast<double>(memory_stats().live_bytes - live);
    EXPECT_GE(used, static_cast<double>(bytes));
    EXPECT_LE(used, static_cast<double>(bytes) * 1.125);
  }
}

TEST(Storage, ServesSeveralThreads) {
  const std::int64_t live = memory_stats().live_bytes;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int round = 0; round < 50; ++round) step();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_stats().live_bytes, live);
}

constexpr bool kSanitized =
#if defined(__SANITIZE_ADDRESS__)
    true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

TEST(StorageDeathTest, AddressSanitizerFindsPointersIntoFreedBlocks) {
  if (!kSanitized) GTEST_SKIP() << "needs AddressSanitizer";
  volatile const float* dangling = nullptr;
  {
    const Tensor freed = ones({100});
    dangling = freed.data<float>();
  }
  EXPECT_DEATH(static_cast<void>(dangling[50]), "use-after-poison");
}

TEST(StorageDeathTest, AddressSanitizerFindsReadsBehindATensor) {
  if (!kSanitized) GTEST_SKIP() << "needs AddressSanitizer";
  for (const std::int64_t size : {16, 5, 15, 16}) {  // also where a larger tensor of the same block was before
    const Tensor tensor = ones({size});
    volatile const float* data = tensor.data<float>();
    EXPECT_EQ(data[size - 1], 1);
    if (size % 16 != 0) {
      EXPECT_DEATH(static_cast<void>(data[size]), "use-after-poison|heap-buffer-overflow");
    }
  }
}

}  // namespace
}  // namespace braid::storage_test

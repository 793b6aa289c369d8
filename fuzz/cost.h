#pragma once
#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

namespace braid::fuzz {

/// The time and memory that an input takes while this is alive. More than in proportion to the input's size ends the
/// process, which libFuzzer reports as a crash. Memory is the heap's, as AddressSanitizer's allocator counts it, and
/// time the processor's, so that other programs do not matter.
class Cost {
 public:
  explicit Cost(std::size_t input_bytes) : input_bytes_(input_bytes) {
    static const int hooks = __sanitizer_install_malloc_and_free_hooks(allocated, freed);
    static_cast<void>(hooks);
    live() = peak() = 0;
  }
  ~Cost() {
    constexpr double kSeconds = 1, kSecondsPerByte = 1e-3;
    constexpr std::size_t kBytes = 64 << 20, kBytesPerByte = 4096;
    const double seconds = static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC;
    const auto bytes = static_cast<std::size_t>(peak());
    if (seconds <= kSeconds + kSecondsPerByte * static_cast<double>(input_bytes_) &&
        bytes <= kBytes + kBytesPerByte * input_bytes_)
      return;
    fmt::print(stderr, "broken: time and memory are in proportion to the input: {} bytes took {:.2f} s and {} bytes\n",
               input_bytes_, seconds, bytes);
    std::abort();
  }
  Cost(const Cost&) = delete;
  Cost& operator=(const Cost&) = delete;

 private:
  static std::atomic<std::int64_t>& live() {
    static std::atomic<std::int64_t> bytes;  // less than zero after more was freed than allocated
    return bytes;
  }
  static std::atomic<std::int64_t>& peak() {
    static std::atomic<std::int64_t> bytes;
    return bytes;
  }
  static void allocated(const volatile void*, std::size_t bytes) {
    const std::int64_t now = live() += static_cast<std::int64_t>(bytes);
    if (now > peak()) peak() = now;
  }
  static void freed(const volatile void* block) {
    if (block != nullptr) live() -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(block));
  }

  std::size_t input_bytes_;
  std::clock_t start_ = std::clock();
};

}  // namespace braid::fuzz

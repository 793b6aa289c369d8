#include <tests/failing_allocations.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr int kNever = std::numeric_limits<int>::max();
std::atomic<int> next_failure = kNever, last_failure = kNever, allocations = 0;

}  // namespace

// Tensor storage is all that braid allocates with an alignment.

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const int number = allocations++;
  if (next_failure <= number && number < last_failure) throw std::bad_alloc();
  const auto step = static_cast<std::size_t>(alignment);
  const bool absurd = bytes > std::size_t{1} << 46;  // where the address sanitizer would end the process
  void* const block = absurd ? nullptr : std::aligned_alloc(step, (bytes + step - 1) / step * step);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace braid {

FailingAllocations::FailingAllocations(Which which) {
  allocations = 0;
  last_failure = which.after + which.times;
  next_failure = which.after;
}

FailingAllocations::~FailingAllocations() { next_failure = last_failure = kNever; }

bool FailingAllocations::failed() const { return allocations > next_failure; }

}  // namespace braid

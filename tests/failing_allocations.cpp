#include <tests/failing_allocations.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr int kNever = std::numeric_limits<int>::max();
std::atomic<int> next_failure = kNever, last_failure = kNever, allocations = 0;
std::atomic<bool> fail_all = false;

bool fails() {
  const int number = allocations++;
  return next_failure <= number && number < last_failure;
}

void* allocate(std::size_t bytes) {
  return fail_all && fails() ? nullptr : std::malloc(std::max<std::size_t>(bytes, 1));
}

void* allocate_or_throw(std::size_t bytes) {
  if (void* const block = allocate(bytes)) return block;
  throw std::bad_alloc();
}

}  // namespace

// Tensor storage is all that braid allocates with an alignment.

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (fails()) throw std::bad_alloc();
  const auto step = static_cast<std::size_t>(alignment);
  const bool absurd = bytes > std::size_t{1} << 46;  // where the address sanitizer would end the process
  void* const block = absurd ? nullptr : std::aligned_alloc(step, (bytes + step - 1) / step * step);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

// All forms, since a sanitizer has its own of those that are left out.

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

namespace braid {

FailingAllocations::FailingAllocations(Which which) {
  allocations = 0;
  fail_all = which.all;
  last_failure = which.after + which.times;
  next_failure = which.after;
}

FailingAllocations::~FailingAllocations() {
  next_failure = last_failure = kNever;
  fail_all = false;
}

bool FailingAllocations::failed() const { return allocations > next_failure; }

}  // namespace braid

#pragma once
#include <mutex>
#include <numeric>
#include <semaphore>
#include <vector>

#include <braid/core/parallel.h>
#include <braid/core/tensor.h>

namespace braid::kernels {

/// A buffer for each thread, lent to the blocks of a parallel_for. All of it is one tensor, so that the caching
/// allocator serves it without the system from the second time on.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t elements) : Scratch(elements, num_threads()) {}

  /// Calls f(buffer) with a buffer that nobody else uses meanwhile.
  template <class F>
  void lend(F f) {
    available_.acquire();
    const int index = take();
    f(first_ + index * stride_);
    give(index);
    available_.release();
  }

 private:
  Scratch(std::int64_t elements, int threads)
      : stride_((elements + 15) / 16 * 16),  // 64-byte aligned like the tensor
        buffers_({threads, stride_}, dtype_of<T>()),
        first_(buffers_.mutable_data<T>()),
        free_(static_cast<std::size_t>(threads)),
        available_(threads) {
    std::iota(free_.begin(), free_.end(), 0);
  }

  int take() {
    const std::scoped_lock lock(mutex_);
    const int index = free_.back();
    free_.pop_back();
    return index;
  }

  void give(int index) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(index);
  }

  std::int64_t stride_;
  Tensor buffers_;  // [threads, stride]
  T* first_;
  std::mutex mutex_;
  std::vector<int> free_;
  std::counting_semaphore<> available_;
};

}  // namespace braid::kernels

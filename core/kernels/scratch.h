#pragma once
#include <cstdint>

#include <braid/core/kernels/round_up.h>
#include <braid/core/parallel.h>
#include <braid/core/storage.h>

namespace braid::kernels {

/// Uninitialized memory for `count` elements, 64-byte aligned, from the caching allocator.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::int64_t count) : storage_(static_cast<std::size_t>(count) * sizeof(T)) {}
  T* data() { return reinterpret_cast<T*>(storage_.data()); }

 private:
  Storage storage_;
};

/// A buffer of `elements` for each thread of a parallel_for. Buffers share one storage, which the caching allocator
/// reuses in the next call, and a thread always gets the same one, which its cache may still hold.
template <class T>
class Scratch {
 public:
  /// For the calling thread alone unless `parallel`.
  explicit Scratch(std::int64_t elements, bool parallel = true)
      : stride_(round_up(elements, 32)),
        first_(parallel ? 0 : detail::thread_index()),
        threads_(parallel ? num_threads() : 1),
        buffers_(threads_ * stride_) {}

  /// Calls f(buffer) with the calling thread's buffer. f must not lend from the same Scratch.
  void lend(auto f) {
    const int thread = detail::thread_index() - first_;
    if (thread < threads_) return f(buffers_.data() + thread * stride_);
    Buffer<T> another(stride_);  // set_num_threads has added threads since
    f(another.data());
  }

 private:
  std::int64_t stride_;  // 64-byte aligned, also for bf16
  int first_, threads_;
  Buffer<T> buffers_;  // [threads, stride]
};

}  // namespace braid::kernels

// Prefetching the next token or tile. Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_PREFETCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_PREFETCH_INL_H_
#undef BRAID_MHC_KERNELS_PREFETCH_INL_H_
#else
#define BRAID_MHC_KERNELS_PREFETCH_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

/// Prefetches the `count` elements of the next token while this one is worked on: rows are too short for the
/// hardware prefetcher. It pays where the kernel passes over a token more than once; single passes are faster without.
template <class T>
void prefetch(const T* next, std::int64_t count) {
  const auto first =
      reinterpret_cast<std::uintptr_t>(next);  // may be past the last token, where pointer arithmetic is undefined
  for (std::uintptr_t line = 0; next != nullptr && line < static_cast<std::size_t>(count) * sizeof(T); line += 64)
    hwy::Prefetch(reinterpret_cast<const char*>(first + line));
}

/// Prefetches the next tile, a cache line at a time, while this one is computed on, so that memory and arithmetic
/// overlap.
class Prefetcher {
 public:
  /// `count` elements of each range, one range after the other; null is left out.
  template <class T>
  Prefetcher(const T* first, std::type_identity_t<const T*> second, std::int64_t count)
      : at_(reinterpret_cast<std::uintptr_t>(first)),
        second_(reinterpret_cast<std::uintptr_t>(second)),
        size_(sizeof(T)),
        bytes_(count * size_),
        left_(bytes_) {
    if (at_ == 0) at_ = std::exchange(second_, 0);
    if (at_ == 0) left_ = 0;
  }

  /// The next `count` elements.
  HWY_INLINE void next(std::int64_t count) {
    for (due_ += count * size_; due_ > 0; due_ -= kLine) next_line();
  }

 private:
  static constexpr std::int64_t kLine = 64;

  HWY_INLINE void next_line() {
    if (left_ <= 0) return;
    hwy::Prefetch(reinterpret_cast<const char*>(at_));
    at_ += kLine;
    left_ -= kLine;
    if (left_ <= 0 && second_ != 0) {
      at_ = std::exchange(second_, 0);
      left_ = bytes_;
    }
  }

  std::uintptr_t at_, second_;
  std::int64_t size_, bytes_, left_, due_ = 0;
};

}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

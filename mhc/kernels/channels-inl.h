// Loops of kernels over rows and channels, their prefetches, and the stores of their results. Included per SIMD target.

#if defined(BRAID_MHC_KERNELS_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_CHANNELS_INL_H_
#undef BRAID_MHC_KERNELS_CHANNELS_INL_H_
#else
#define BRAID_MHC_KERNELS_CHANNELS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <hwy/cache_control.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>
#include <braid/mhc/kernels/tiles.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls `f(std::integral_constant<I>, first)` for groups of I = kMost rows, then one of those that are left; with
/// `kHalves` for groups of half, a quarter .. of kMost, which are fewer forms of f to compile.
template <int kMost, bool kHalves = false, class F>
HWY_INLINE void by_groups(std::int64_t n, F&& f, std::int64_t i = 0) {
  for (; i + kMost <= n; i += kMost) f(std::integral_constant<int, kMost>(), i);
  if constexpr (kMost > 1)
    if (i < n) by_groups<kHalves ? kMost / 2 : kMost - 1, kHalves>(n, f, i);
}

/// Calls `f(d, begin, end)` for the channels that fill whole vectors, then for the rest one by one.
template <class T, class F>
HWY_INLINE void over_channels(std::int64_t channels, F&& f) {
  const hn::ScalableTag<T> d;
  const auto whole = channels - channels % static_cast<std::int64_t>(hn::Lanes(d));
  if (whole != 0) f(d, std::int64_t{0}, whole);
  if (whole != channels) f(hn::CappedTag<T, 1>(), whole, channels);
}

/// How results are stored. Past the caches, where non_temporal() allows it, their lines need not be read first: a
/// third of what a write would move. A kernel that stores so calls hwy::FlushStream() before its block of work ends.
enum class Store { cached, non_temporal };

template <Store kStore, class D, class T>
HWY_INLINE void store(D d, hn::Vec<D> v, T* p) {
  if constexpr (kStore == Store::non_temporal && hn::MaxLanes(D()) > 1)
    hn::Stream(v, d, p);
  else
    hn::StoreU(v, d, p);
}
template <Store kStore, class D>
HWY_INLINE void store(D d, hn::Vec<D> v, bfloat16* p) {
  using braid::kernels::HWY_NAMESPACE::Halves, braid::kernels::HWY_NAMESPACE::round_to_halves;
  store<kStore>(Halves<D>(), round_to_halves(d, v), reinterpret_cast<std::uint16_t*>(p));
}

/// A vector of elements; bfloat16 elements are widened to floats.
template <class D, class T>
HWY_INLINE hn::Vec<D> load(D d, const T* p) {
  return braid::kernels::HWY_NAMESPACE::Whole{}.load(d, p);
}

/// For rows that non_temporal() allows: whole lines, hence whole vectors.
template <class T>
void copy_non_temporal(std::int64_t count, const T* from, T* to) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  auto* out = reinterpret_cast<std::uint32_t*>(to);
  for (std::int64_t i = 0; i < count * static_cast<std::int64_t>(sizeof(T)) / 4;
       i += static_cast<std::int64_t>(hn::Lanes(d)))
    store<Store::non_temporal>(d, hn::LoadU(d, words + i), out + i);
}

/// How to store a result of `size` elements in rows of `channels`.
Store store_for(const auto* result, std::int64_t size, std::int64_t channels) {
  return non_temporal(result, size, channels) ? Store::non_temporal : Store::cached;
}

/// A place in an array that need not be there; null if it is not.
auto* at(auto* data, std::int64_t offset) { return data == nullptr ? nullptr : data + offset; }

/// Prefetches the `count` elements of the next token while this one is worked on: rows are too short for the
/// hardware prefetcher. It pays where the kernel passes over a token more than once; single passes are faster without.
template <class T>
void prefetch(const T* next, std::int64_t count) {
  const auto first =
      reinterpret_cast<std::uintptr_t>(next);  // may be past the last token, where pointer arithmetic is undefined
  for (std::uintptr_t line = 0; next != nullptr && line < static_cast<std::size_t>(count) * sizeof(T); line += 64)
    hwy::Prefetch(reinterpret_cast<const char*>(first + line));
}

/// Prefetches the next tile, a cache line at a time, while this one is computed on: memory and arithmetic overlap.
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

// How kernels walk over rows and channels, and where their results go.
// Included once per SIMD target.

#if defined(BRAID_MHC_KERNELS_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BRAID_MHC_KERNELS_CHANNELS_INL_H_
#undef BRAID_MHC_KERNELS_CHANNELS_INL_H_
#else
#define BRAID_MHC_KERNELS_CHANNELS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/tiles.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls `f(std::integral_constant<I>, first)` for groups of I = 4 rows, then one of the 1 to 3 that are left.
template <class F>
HWY_INLINE void in_fours(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) f(std::integral_constant<int, 4>(), i);
  if (n - i == 3) f(std::integral_constant<int, 3>(), i);
  if (n - i == 2) f(std::integral_constant<int, 2>(), i);
  if (n - i == 1) f(std::integral_constant<int, 1>(), i);
}

/// Calls `f(d, begin, end)` for the channels that fill whole vectors, of at most kCap lanes, then for the rest one by
/// one.
template <class T, size_t kCap = HWY_MAX_BYTES / sizeof(T), class F>
HWY_INLINE void over_channels(int64_t channels, F&& f) {
  const hn::CappedTag<T, kCap> d;
  const auto whole = channels - channels % static_cast<int64_t>(hn::Lanes(d));
  if (whole != 0) f(d, int64_t{0}, whole);
  if (whole != channels) f(hn::CappedTag<T, 1>(), whole, channels);
}

/// Asks for the `count` numbers of the next token while this one is worked on: rows are too short for the processor to
/// guess what comes. It pays where a token is gone over more than once; one pass over the streams is faster without.
template <class T>
void prefetch(const T* next, int64_t count) {
  const auto first = reinterpret_cast<std::uintptr_t>(next);  // may lie behind the last token: not a pointer to add to
  for (std::uintptr_t line = 0; next != nullptr && line < static_cast<size_t>(count) * sizeof(T); line += 64)
    hwy::Prefetch(reinterpret_cast<const char*>(first + line));
}

/// Where results go. Past the caches, where kernels::past_caches() allows it, their lines need not be read first: a
/// third of what a write would move. A kernel that stores so calls hwy::FlushStream() before its block of tokens ends.
enum class Store { cached, past_caches };

template <Store kStore, class D, class T>
HWY_INLINE void store(D d, hn::Vec<D> v, T* p) {
  if constexpr (kStore == Store::past_caches && hn::MaxLanes(D()) > 1)
    hn::Stream(v, d, p);
  else
    hn::StoreU(v, d, p);
}

/// For rows that kernels::past_caches() allows: whole lines, hence whole vectors.
template <class T>
void copy_past_caches(int64_t count, const T* from, T* to) {
  const hn::CappedTag<T, 64 / sizeof(T)> d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d)))
    store<Store::past_caches>(d, hn::LoadU(d, from + i), to + i);
}

/// Where a result of `size` numbers in rows of `channels` should go.
template <class T>
Store store_for(const T* result, int64_t size, int64_t channels) {
  return kernels::past_caches(result, size, channels) ? Store::past_caches : Store::cached;
}

}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard

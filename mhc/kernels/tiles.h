#pragma once
#include <algorithm>
#include <cstdint>

#include <braid/core/kernels/scratch.h>
#include <braid/core/parallel.h>
#include <braid/core/tensor.h>
#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::kernels {

/// Tokens (or elements) cut into tiles of `size`: the unit of work of a thread and of partial sums.
struct Tiles {
  std::int64_t total, size;

  std::int64_t count() const { return (total + size - 1) / size; }
  /// The index of the tile that begins at a token.
  std::int64_t index(std::int64_t begin) const { return begin / size; }

  /// Calls f(begin, end) for every tile, on all threads.
  template <class F>
  void for_each(F&& f) const {
    parallel_for(total, size, f);
  }
};

/// The sizes of x [..., n, C].
inline StreamSizes sizes_of(const Shape& x) { return {x.axes(0, x.rank() - 2).numel(), x[-2], x[-1]}; }

/// Tiles of about 256 KiB of streams.
template <class T>
Tiles tiles_of(const StreamSizes& s) {
  const std::int64_t token_bytes = std::max<std::int64_t>(1, s.width() * static_cast<std::int64_t>(sizeof(T)));
  return {s.tokens, std::clamp<std::int64_t>(256 * 1024 / token_bytes, 16, 256)};
}

/// From this size on, results are better stored by non-temporal stores. Two cores with 2 MiB of second-level
/// cache each train 2 to 3 % faster with streams of 4 MiB stored so.
constexpr std::int64_t kNonTemporalBytes = std::int64_t{4} << 20;

/// True for a result of `size` elements in rows of `channels` that is large and has rows of whole cache lines.
template <class T>
bool non_temporal(const T* result, std::int64_t size, std::int64_t channels) {
  constexpr std::int64_t kLine = 64, kElement = sizeof(T);
  return size * kElement >= kNonTemporalBytes && channels * kElement % kLine == 0 &&
         reinterpret_cast<std::uintptr_t>(result) % kLine == 0;
}

/// Sums over all tokens, computed tile by tile on any thread and added in the order of the tiles.
template <class T>
class PartialSums {
 public:
  /// `width` sums for each of the tiles.
  PartialSums(std::int64_t tiles, std::int64_t width)
      : tiles_(tiles),
        stride_(braid::kernels::round_up(width, 16)),  // 64-byte aligned like the buffer
        rows_(std::max<std::int64_t>(1, tiles) * stride_),
        data_(rows_.data()) {
    if (tiles == 0) row(0);
  }

  /// The sums of one tile, all zero.
  T* row(std::int64_t tile) {
    T* const sums = data_ + tile * stride_;
    std::fill_n(sums, stride_, T{0});
    return sums;
  }

  /// Adds the rows of the tiles, all of which row() must have initialized; returns [width].
  const T* add_up() {
    parallel_for(stride_, 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = 1; tile < tiles_; ++tile)
        for (std::int64_t i = begin; i < end; ++i) data_[i] += data_[tile * stride_ + i];
    });
    return data_;
  }

 private:
  std::int64_t tiles_, stride_;
  braid::kernels::Buffer<T> rows_;  // [tiles, stride]
  T* data_;
};

}  // namespace braid::mhc::kernels

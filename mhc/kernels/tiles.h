#pragma once
#include <algorithm>
#include <cstdint>

#include <braid/core/parallel.h>
#include <braid/core/tensor.h>
#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::kernels {

/// Tokens cut into tiles by shape alone: about 256 KiB of streams each, the unit of work of a thread and of sums.
class Tiles {
 public:
  Tiles(std::int64_t tokens, std::int64_t bytes_per_token)
      : tokens_(tokens),
        size_(std::clamp<std::int64_t>(256 * 1024 / std::max<std::int64_t>(1, bytes_per_token), 16, 256)) {}

  std::int64_t count() const { return (tokens_ + size_ - 1) / size_; }
  std::int64_t index(std::int64_t begin) const { return begin / size_; }

  /// Calls f(begin, end) for every tile, on all threads.
  template <class F>
  void for_each(F&& f) const {
    parallel_for(tokens_, size_, f);
  }

 private:
  std::int64_t tokens_, size_;
};

/// Of x [..., n, C].
inline StreamSizes sizes_of(const Shape& x) { return {x.axes(0, x.rank() - 2).numel(), x[-2], x[-1]}; }

template <class T>
Tiles tiles_of(const StreamSizes& s) {
  return {s.tokens, s.width() * static_cast<std::int64_t>(sizeof(T))};
}

/// From this size on results are better written past the caches. Two cores with 2 MiB of second-level cache each train
/// 2 to 3 % faster with streams of 4 MiB written so.
constexpr std::int64_t kPastCaches = std::int64_t{4} << 20;

/// Whether a result of `size` numbers in rows of `channels` should be: if it is large and its rows are whole lines.
template <class T>
bool past_caches(const T* result, std::int64_t size, std::int64_t channels) {
  constexpr std::int64_t kLine = 64, kNumber = sizeof(T);
  return size * kNumber >= kPastCaches && channels * kNumber % kLine == 0 &&
         reinterpret_cast<std::uintptr_t>(result) % kLine == 0;
}

/// Sums over all tokens, taken tile by tile: one row a tile, added in the order of the tiles.
template <class T>
class TileSums {
 public:
  TileSums(const Tiles& tiles, std::int64_t width)
      : tiles_(tiles), width_(width), rows_(zeros({tiles.count(), width}, dtype_of<T>())) {
    data_ = rows_.template mutable_data<T>();
  }

  /// The row of the tile that begins at a token.
  T* row(std::int64_t begin) { return data_ + tiles_.index(begin) * width_; }

  /// total [size]: the sums of `size` columns from `column` on.
  void add_up(std::int64_t column, std::int64_t size, T* total) const {
    std::fill_n(total, size, T{0});
    for (std::int64_t tile = 0; tile < tiles_.count(); ++tile)
      for (std::int64_t i = 0; i < size; ++i) total[i] += data_[tile * width_ + column + i];
  }

 private:
  Tiles tiles_;
  std::int64_t width_;
  Tensor rows_;  // [tiles, width]
  T* data_;
};

/// For kernels, null is what is not given or not wanted.
template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

template <class T>
T* mutable_or_null(Tensor& t) {
  return t.defined() ? t.mutable_data<T>() : nullptr;
}

}  // namespace braid::mhc::kernels

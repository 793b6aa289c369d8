#include <braid/core/products/detail/gemm_by_tiles.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include <braid/core/kernels/elements.h>
#include <braid/core/kernels/round_up.h>
#include <braid/core/kernels/scratch.h>
#include <braid/core/parallel.h>
#include <braid/core/products/kernels/amx.h>

namespace braid::detail {
namespace {

namespace amx = kernels::amx;
using kernels::divide_up, kernels::round_up;

// k is cut into equal blocks, of all terms together, which also keeps the sums of the more exact products short. A tile
// packs its rows of one block, up to 1.3 MiB, which the second-level cache holds.
constexpr std::int64_t kMostDepth = 1152, kMostRowsTimesDepth = 512 * kMostDepth, kPanel = 64;

std::int64_t depth_of_blocks(int terms, std::int64_t k) {
  return round_up(divide_up(k, divide_up(terms * k, kMostDepth)), 32);
}

/// Whether all elements of x [rows, columns] are finite as bf16.
bool is_finite(std::int64_t rows, std::int64_t columns, MatrixView<const float> x) {
  if (x.transposed) std::swap(rows, columns);
  constexpr std::int64_t kElements = 16384;
  std::atomic<bool> finite = true;
  parallel_for_each(rows, columns, kElements, [&](std::int64_t i) {
    std::int32_t largest = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      largest = std::max(largest, std::bit_cast<std::int32_t>(x.data[i * x.stride + j]) & 0x7fffffff);
    if (largest >= 0x7f7f8000) finite = false;  // rounds to infinity
  });
  return finite;
}

struct Tile {
  std::int64_t rows, columns;
};

/// The tiles of c that are estimated to take the least time: packing a row or column of an operand costs as much as 50
/// products of it, and the last thread to finish keeps the others waiting for a quarter of a tile.
Tile choose_tile(int terms, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t threads) {
  constexpr std::int64_t kLeast = 2'000'000;  // multiplications, which take less time than a fork
  if (m * n * k < kLeast) threads = 1;
  const auto cut = [](std::int64_t size, std::int64_t count) {
    return std::min(size, round_up(divide_up(size, count), kPanel));
  };
  Tile best{};
  double least = std::numeric_limits<double>::infinity();
  std::int64_t down = divide_up(m * terms * depth_of_blocks(terms, k), kMostRowsTimesDepth);
  do {
    for (std::int64_t across = 1; across <= 4 * threads; across *= 2) {
      const Tile tile{cut(m, down), cut(n, across)};
      const std::int64_t tiles = divide_up(m, tile.rows) * divide_up(n, tile.columns);
      const double time = (static_cast<double>(divide_up(tiles, threads)) + 0.25) *
                          static_cast<double>(tile.rows * tile.columns + 50 * (tile.rows + tile.columns));
      if (time < least) least = time, best = tile;
    }
    down *= 2;
  } while (down <= 4 * threads);
  return best;
}

/// Threads pack b, then each packs rows of a and multiplies. Functions return false where an element is not finite.
template <class T, class C>
class ByTiles {
 public:
  ByTiles(const Product<T, C>& p, bool parallel)
      : terms_(std::is_same_v<T, float> ? p.bf16_terms : 1),
        parallel_(parallel),
        p_(p),
        depth_(depth_of_blocks(terms_, p.k)),
        tile_(choose_tile(terms_, p.m, p.n, p.k, parallel ? num_threads() : 1)),
        panels_(divide_up(p.n, kPanel)),
        b_(panels_ * packed_lines(kPanel, p.k)),
        a_(packed_lines(tile_.rows, depth_), parallel) {}

  bool multiply() {
    if (!pack_b()) return false;
    if constexpr (std::is_same_v<T, float>)  // before anything is written to c
      if (p_.beta != 0 && !is_finite(p_.m, p_.k, p_.a)) return false;
    const bool has_sums = kRounds && (p_.k > depth_ || p_.beta != 0);
    kernels::Scratch<float> sums(has_sums ? tile_.rows * tile_.columns : 0, parallel_);
    const std::int64_t across = divide_up(p_.n, tile_.columns), tiles = divide_up(p_.m, tile_.rows) * across;
    std::atomic<bool> finite = true;
    for_each(tiles, 1, [&](std::int64_t index) {
      const Tile at{index / across * tile_.rows, index % across * tile_.columns};
      const Tile size{std::min(tile_.rows, p_.m - at.rows), std::min(tile_.columns, p_.n - at.columns)};
      a_.lend([&](bfloat16* a) {
        sums.lend([&](float* values) {
          if (!multiply(at, size, a, values)) finite = false;
        });
      });
    });
    return finite;
  }

 private:
  static constexpr bool kRounds = !std::is_same_v<C, float>;

  /// Calls f(i) for each i in [0, n), in blocks on all threads or in one on this.
  void for_each(std::int64_t n, std::int64_t block, auto f) const { parallel_for_each(n, 1, parallel_ ? block : n, f); }

  std::int64_t packed_lines(std::int64_t lines, std::int64_t depth) const {
    return divide_up(lines, amx::kGroup) * amx::packed_size(terms_, depth);
  }

  bool pack_b() {
    const MatrixView<const T> columns_of_b = p_.b.transpose();
    const std::int64_t block = std::max<std::int64_t>(1, 32768 / (kPanel * depth_));
    std::atomic<bool> finite = true;
    for_each(panels_ * divide_up(p_.k, depth_), block, [&](std::int64_t index) {
      const std::int64_t j = index % panels_ * kPanel, first = index / panels_ * depth_;
      const std::int64_t columns = std::min(kPanel, p_.n - j), depth = std::min(depth_, p_.k - first);
      const MatrixView<const T> panel = columns_of_b.from(j, first);
      if (!amx::pack(amx::Side::right, terms_, panel, columns, depth, packed_b(j, first, depth))) finite = false;
    });
    return finite;
  }

  /// The panel of columns from j on, of the block of k from `first` on: blocks lie one after the other.
  bfloat16* packed_b(std::int64_t j, std::int64_t first, std::int64_t depth) {
    return b_.data() + panels_ * packed_lines(kPanel, first) + packed_lines(j, depth);
  }

  /// A tile of c; `values` holds the sums of results that are rounded.
  bool multiply(Tile at, Tile size, bfloat16* a, float* values) {
    const MatrixView<C> c = p_.c.from(at.rows, at.columns);
    MatrixView<float> sums{values, size.columns};
    if constexpr (!kRounds)
      sums = c;
    else if (p_.beta != 0)
      kernels::convert_rows(kernels::element_kernels().widen, size.rows, size.columns, c, sums);
    for (std::int64_t first = 0; first < p_.k; first += depth_) {
      const std::int64_t depth = std::min(depth_, p_.k - first);
      if (!amx::pack(amx::Side::left, terms_, p_.a.from(at.rows, first), size.rows, depth, a)) return false;
      const bool has_sums = first > 0 || p_.beta != 0;
      amx::PackedProduct block{.terms = terms_,
                               .m = size.rows,
                               .n = size.columns,
                               .k = depth,
                               .a = a,
                               .b = packed_b(at.columns, first, depth),
                               .from = has_sums            ? sums.data
                                       : p_.row != nullptr ? p_.row + at.columns
                                                           : nullptr,
                               .from_stride = has_sums ? sums.stride : 0,
                               .beta = first == 0 && p_.beta != 0 ? p_.beta : 1.0F,
                               .c = sums};
      if constexpr (kRounds)
        if (first + depth == p_.k) block.rounded = c;
      multiply_(block);
    }
    return true;
  }

  amx::Multiply multiply_ = amx::fast_multiply();
  int terms_;
  bool parallel_;
  const Product<T, C>& p_;
  std::int64_t depth_;
  Tile tile_;
  std::int64_t panels_;
  kernels::Buffer<bfloat16> b_;
  kernels::Scratch<bfloat16> a_;
};

}  // namespace

template <class T, class C>
bool gemm_by_tiles(const Product<T, C>& product, bool parallel) {
  return ByTiles<T, C>(product, parallel).multiply();
}

template bool gemm_by_tiles(const Product<float>&, bool);
template bool gemm_by_tiles(const Product<bfloat16, float>&, bool);
template bool gemm_by_tiles(const Product<bfloat16>&, bool);

}  // namespace braid::detail

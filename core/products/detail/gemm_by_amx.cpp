#include <braid/core/products/detail/gemm_by_amx.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>

#include <braid/core/kernels/convert.h>
#include <braid/core/kernels/scratch.h>
#include <braid/core/parallel.h>
#include <braid/core/products/kernels/amx.h>
#include <braid/core/storage.h>

namespace braid::detail {
namespace {

namespace amx = kernels::amx;

constexpr std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return divide_up(n, multiple) * multiple; }

// k is cut into equal blocks, of all parts together, which also keeps the sums of the more exact ones short. A tile
// packs its rows of one, up to 1.3 MiB, which the second-level cache holds.
constexpr std::int64_t kMostDepth = 1152, kMostRowsTimesDepth = 512 * kMostDepth, kPanel = 64;
constexpr std::int64_t kScratch = kMostRowsTimesDepth + kPanel * kMostDepth;

std::int64_t depth_of_blocks(int parts, std::int64_t k) {
  return round_up(divide_up(k, divide_up(parts * k, kMostDepth)), 32);
}

/// Of the calling thread: what another one wrote comes at a tenth of the speed of the own cache.
bfloat16* scratch() {
  struct alignas(64) Line {
    bfloat16 values[32];
  };
  thread_local const std::unique_ptr<Line[]> mine = std::make_unique_for_overwrite<Line[]>(kScratch / 32);
  return reinterpret_cast<bfloat16*>(mine.get());
}

/// Whether all numbers of a matrix are finite as bf16.
bool is_finite(std::int64_t rows, std::int64_t columns, const float* x, std::int64_t ldx) {
  constexpr std::int64_t kElements = 16384;
  std::atomic<bool> finite = true;
  parallel_for(rows, std::max<std::int64_t>(1, kElements / columns), [&](std::int64_t begin, std::int64_t end) {
    std::int32_t largest = 0;
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        largest = std::max(largest, std::bit_cast<std::int32_t>(x[i * ldx + j]) & 0x7fffffff);
    if (largest >= 0x7f7f8000) finite = false;  // what rounds to infinity
  });
  return finite;
}

struct Tile {
  std::int64_t rows, columns;
};

/// The tiles of c that take the least time: to pack a line costs as much as 50 products of it, and when all others are
/// done one waits for a quarter of a tile. Sums do not depend on tiles.
Tile choose_tile(int parts, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kLeast = 2'000'000;  // products, in less time than a fork takes
  const std::int64_t threads = m * n * k < kLeast ? 1 : num_threads();
  const auto cut = [](std::int64_t size, std::int64_t count) {
    return std::min(size, round_up(divide_up(size, count), kPanel));
  };
  Tile best{};
  double least = std::numeric_limits<double>::infinity();
  std::int64_t down = divide_up(m * parts * depth_of_blocks(parts, k), kMostRowsTimesDepth);
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

/// All threads pack b, then each packs the rows of its tiles and multiplies. Functions return false where a number is
/// not finite.
template <class T, class C>
class ByAmx {
 public:
  ByAmx(int parts, const kernels::PackedProduct<T, C>& p, const float* row)
      : parts_(parts),
        p_(p),
        row_(row),
        depth_(depth_of_blocks(parts, p.k)),
        tile_(choose_tile(parts, p.m, p.n, p.k)),
        panels_(divide_up(p.n, kPanel)),
        b_(static_cast<std::size_t>(panels_ * packed_lines(kPanel, p.k)) * sizeof(bfloat16)) {}

  bool multiply() {
    if (!pack_b()) return false;
    if constexpr (std::is_same_v<T, float>)  // before anything is written to c
      if (p_.beta != 0 && !is_finite(p_.transpose_a ? p_.k : p_.m, p_.transpose_a ? p_.m : p_.k, p_.a, p_.lda))
        return false;
    std::optional<kernels::Scratch<float>> sums;
    if constexpr (!std::is_same_v<C, float>) sums.emplace(tile_.rows * columns_of_sums(tile_));
    const std::int64_t across = divide_up(p_.n, tile_.columns);
    std::atomic<bool> finite = true;
    parallel_for(divide_up(p_.m, tile_.rows) * across, 1, [&](std::int64_t index, std::int64_t) {
      const Tile at{index / across * tile_.rows, index % across * tile_.columns};
      const Tile size{std::min(tile_.rows, p_.m - at.rows), std::min(tile_.columns, p_.n - at.columns)};
      C* const c = p_.c + at.rows * p_.ldc + at.columns;
      if constexpr (std::is_same_v<C, float>) {
        if (!multiply(at, size, c, p_.ldc)) finite = false;
      } else {
        sums->lend([&](float* values) { multiply_and_round(at, size, c, values); });
      }
    });
    return finite;
  }

 private:
  std::int64_t packed_lines(std::int64_t lines, std::int64_t depth) const {
    return divide_up(lines, amx::kGroup) * amx::packed_size(parts_, depth);
  }

  bool pack_b() {
    constexpr std::int64_t kElements = 32768;
    const kernels::Lines<T> b = kernels::columns_of_b(p_);
    const std::int64_t some = std::max<std::int64_t>(1, kElements / (kPanel * depth_));
    std::atomic<bool> finite = true;
    parallel_for(panels_ * divide_up(p_.k, depth_), some, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t index = begin; index < end; ++index) {
        const std::int64_t j = index % panels_ * kPanel, first = index / panels_ * depth_;
        const std::int64_t columns = std::min(kPanel, p_.n - j), depth = std::min(depth_, p_.k - first);
        if (!amx::pack(amx::Side::right, parts_, b.from(j, first), columns, depth, packed_b(j, first, depth)))
          finite = false;
      }
    });
    return finite;
  }

  /// The panel of columns from j on, of the block of k from `first` on: blocks lie one after the other.
  bfloat16* packed_b(std::int64_t j, std::int64_t first, std::int64_t depth) {
    return reinterpret_cast<bfloat16*>(b_.data()) + panels_ * packed_lines(kPanel, first) + packed_lines(j, depth);
  }

  bool pack_a(std::int64_t i, std::int64_t rows, std::int64_t first) const {
    return amx::pack(amx::Side::left, parts_, kernels::rows_of_a(p_).from(i, first), rows,
                     std::min(depth_, p_.k - first), scratch());
  }

  /// A block of k, of packed rows.
  void multiply_block(std::int64_t j, Tile size, std::int64_t first, float* c, std::int64_t ldc) {
    const std::int64_t depth = std::min(depth_, p_.k - first);
    const bool has_sums = first > 0 || p_.beta != 0;
    amx::multiply({.parts = parts_,
                   .m = size.rows,
                   .n = size.columns,
                   .k = depth,
                   .a = scratch(),
                   .b = packed_b(j, first, depth),
                   .from = has_sums          ? c
                           : row_ != nullptr ? row_ + j
                                             : nullptr,
                   .from_step = has_sums ? ldc : 0,
                   .beta = first == 0 && p_.beta != 0 ? p_.beta : 1.0F,
                   .c = c,
                   .ldc = ldc});
  }

  bool multiply(Tile at, Tile size, float* c, std::int64_t ldc) {
    for (std::int64_t first = 0; first < p_.k; first += depth_) {
      if (!pack_a(at.rows, size.rows, first)) return false;
      multiply_block(at.columns, size, first, c, ldc);
    }
    return true;
  }

  /// Sums that are complete after one block are rounded while the cache holds them.
  std::int64_t columns_of_sums(Tile size) const { return p_.k <= depth_ ? kPanel : size.columns; }

  void multiply_and_round(Tile at, Tile size, bfloat16* c, float* sums) {
    const kernels::ConvertKernels convert = kernels::convert_kernels();
    const std::int64_t most = columns_of_sums(size);
    for (std::int64_t j = 0; j < size.columns; j += most) {
      const std::int64_t columns = std::min(most, size.columns - j);
      if (p_.beta != 0)
        for (std::int64_t i = 0; i < size.rows; ++i) convert.widen(c + i * p_.ldc + j, sums + i * columns, columns);
      for (std::int64_t first = 0; first < p_.k; first += depth_) {
        if (j == 0) pack_a(at.rows, size.rows, first);
        multiply_block(at.columns + j, {size.rows, columns}, first, sums, columns);
      }
      for (std::int64_t i = 0; i < size.rows; ++i) convert.round(sums + i * columns, c + i * p_.ldc + j, columns);
    }
  }

  int parts_;
  const kernels::PackedProduct<T, C>& p_;
  const float* row_;
  std::int64_t depth_;
  Tile tile_;
  std::int64_t panels_;
  Storage b_;
};

}  // namespace

template <class T, class C>
bool gemm_by_amx(int parts, const kernels::PackedProduct<T, C>& product, const float* row) {
  return ByAmx<T, C>(parts, product, row).multiply();
}

template bool gemm_by_amx(int, const kernels::PackedProduct<float, float>&, const float*);
template bool gemm_by_amx(int, const kernels::PackedProduct<bfloat16, float>&, const float*);
template bool gemm_by_amx(int, const kernels::PackedProduct<bfloat16, bfloat16>&, const float*);

}  // namespace braid::detail

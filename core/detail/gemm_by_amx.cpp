#include <braid/core/detail/gemm_by_amx.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <type_traits>

#include <braid/core/kernels/amx.h>
#include <braid/core/kernels/convert.h>
#include <braid/core/parallel.h>
#include <braid/core/storage.h>

namespace braid::detail {
namespace {

namespace amx = kernels::amx;

constexpr int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
constexpr int64_t round_up(int64_t n, int64_t multiple) { return divide_up(n, multiple) * multiple; }
int64_t packed_lines(int parts, int64_t lines, int64_t depth) {
  return divide_up(lines, amx::kGroup) * amx::packed_size(parts, depth);
}

/// Memory for `count` values.
template <class T>
struct Buffer {
  explicit Buffer(int64_t count) : count(count), storage(static_cast<size_t>(count) * sizeof(T)) {}
  T* data() { return reinterpret_cast<T*>(storage.data()); }
  int64_t count;
  Storage storage;
};

/// Of the calling thread: what another one wrote comes at a tenth of the speed of the own cache.
bfloat16* scratch(int64_t count) {
  thread_local std::unique_ptr<Buffer<bfloat16>> mine;
  if (mine == nullptr || mine->count < count) mine = std::make_unique<Buffer<bfloat16>>(count);
  return mine->data();
}

// k is cut into equal blocks. A tile packs its rows of a block, and then a panel of columns at a time. In three parts
// the rows take up to 1.2 MiB and a panel 0.3, which the second-level cache holds.
constexpr int64_t kMostDepth = 768, kMostRowsTimesDepth = 256 * kMostDepth, kPanel = 64;

int64_t depth_of_blocks(int64_t k) { return round_up(divide_up(k, divide_up(k, kMostDepth)), 32); }

struct Tile {
  int64_t rows, columns;
};

/// The tiles of c that take the least time: to pack a line costs as much as 50 products of it, and when all others are
/// done one waits for a quarter of a tile. Sums do not depend on tiles.
Tile choose_tile(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLeast = 2'000'000;  // products, in less time than a fork takes
  const int64_t threads = m * n * k < kLeast ? 1 : num_threads();
  const auto cut = [](int64_t size, int64_t count) { return std::min(size, round_up(divide_up(size, count), kPanel)); };
  Tile best{};
  double least = std::numeric_limits<double>::infinity();
  for (int64_t down = divide_up(m * depth_of_blocks(k), kMostRowsTimesDepth);
       down <= 4 * threads || least == std::numeric_limits<double>::infinity(); down *= 2) {
    for (int64_t across = 1; across <= 4 * threads; across *= 2) {
      const Tile tile{cut(m, down), cut(n, across)};
      const int64_t tiles = divide_up(m, tile.rows) * divide_up(n, tile.columns);
      const double time = (static_cast<double>(divide_up(tiles, threads)) + 0.25) *
                          static_cast<double>(tile.rows * tile.columns + 50 * (tile.rows + tile.columns));
      if (time < least) least = time, best = tile;
    }
  }
  return best;
}

template <class T, class C>
class ByAmx {
 public:
  ByAmx(int parts, const kernels::PackedProduct<T, C>& p, const float* row)
      : parts_(parts),
        p_(p),
        row_(row),
        depth_(depth_of_blocks(p.k)),
        b_(divide_up(p.n, kPanel) * packed_lines(parts, kPanel, p.k)) {}

  bool multiply() {
    if (!pack_b()) return false;
    const Tile tile = choose_tile(p_.m, p_.n, p_.k);
    if (p_.beta != 0 && !std::is_same_v<T, bfloat16> &&
        !on_tiles(tile, [this](Tile at, Tile size) { return is_finite(at, size); }))
      return false;
    return on_tiles(tile, [this](Tile at, Tile size) { return multiply(at, size); });
  }

 private:
  /// Whether all of f(first, size) are true.
  template <class F>
  bool on_tiles(Tile tile, const F& f) {
    const int64_t across = divide_up(p_.n, tile.columns);
    std::atomic<bool> all = true;
    parallel_for(divide_up(p_.m, tile.rows) * across, 1, [&](int64_t index, int64_t) {
      const Tile at{index / across * tile.rows, index % across * tile.columns};
      if (!f(at, Tile{std::min(tile.rows, p_.m - at.rows), std::min(tile.columns, p_.n - at.columns)})) all = false;
    });
    return all;
  }

  bool pack_rows(int64_t i, int64_t rows, int64_t first, int64_t depth, bfloat16* to) const {
    const amx::Lines<T> a = p_.transpose_a ? amx::Lines<T>{p_.a, 1, p_.lda} : amx::Lines<T>{p_.a, p_.lda, 1};
    return amx::pack(amx::Side::left, parts_, a.from(i, first), rows, depth, to);
  }

  bool pack_columns(int64_t j, int64_t columns, int64_t first, int64_t depth, bfloat16* to) const {
    const amx::Lines<T> b = p_.transpose_b ? amx::Lines<T>{p_.b, p_.ldb, 1} : amx::Lines<T>{p_.b, 1, p_.ldb};
    return amx::pack(amx::Side::right, parts_, b.from(j, first), columns, depth, to);
  }

  /// Whether all that a tile is made of is, before anything is written to c.
  bool is_finite(Tile at, Tile size) {
    bfloat16* const packed = scratch(packed_lines(parts_, std::max(size.rows, kPanel), depth_));
    bool finite = true;
    for (int64_t first = 0; first < p_.k; first += depth_) {
      const int64_t depth = std::min(depth_, p_.k - first);
      if (at.columns == 0) finite &= pack_rows(at.rows, size.rows, first, depth, packed);
      for (int64_t j = 0; at.rows == 0 && j < size.columns; j += kPanel)
        finite &= pack_columns(at.columns + j, std::min(kPanel, size.columns - j), first, depth, packed);
    }
    return finite;
  }

  bool pack_b() {
    const int64_t panels = divide_up(p_.n, kPanel), blocks = divide_up(p_.k, depth_);
    std::atomic<bool> finite = true;
    parallel_for(panels * blocks, std::max<int64_t>(1, 32768 / (kPanel * depth_)), [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t j = index % panels * kPanel, first = index / panels * depth_;
        const int64_t depth = std::min(depth_, p_.k - first);
        if (!pack_columns(j, std::min(kPanel, p_.n - j), first, depth, packed_b(j, first, depth))) finite = false;
      }
    });
    return finite;
  }
  bfloat16* packed_b(int64_t j, int64_t first, int64_t depth) {
    return b_.data() + divide_up(p_.n, kPanel) * packed_lines(parts_, kPanel, first) +
           j / kPanel * packed_lines(parts_, kPanel, depth);
  }

  bool multiply(Tile at, Tile size) {
    C* const c = p_.c + at.rows * p_.ldc + at.columns;
    if constexpr (std::is_same_v<C, float>) {
      return multiply(at, size, c, p_.ldc);
    } else {
      const kernels::ConvertKernels convert = kernels::convert_kernels();
      Buffer<float> sums(size.rows * size.columns);
      const auto row_of_sums = [&](int64_t i) { return sums.data() + i * size.columns; };
      if (p_.beta != 0)
        for (int64_t i = 0; i < size.rows; ++i) convert.widen(c + i * p_.ldc, row_of_sums(i), size.columns);
      const bool finite = multiply(at, size, sums.data(), size.columns);
      for (int64_t i = 0; i < size.rows; ++i) convert.round(row_of_sums(i), c + i * p_.ldc, size.columns);
      return finite;
    }
  }

  bool multiply(Tile at, Tile size, float* c, int64_t ldc) {
    const int64_t count = packed_lines(parts_, size.rows, depth_);
    bfloat16* const rows = scratch(count);
    for (int64_t first = 0; first < p_.k; first += depth_) {
      const int64_t depth = std::min(depth_, p_.k - first);
      if (!pack_rows(at.rows, size.rows, first, depth, rows)) return false;
      const bool has_sums = first > 0 || p_.beta != 0;
      for (int64_t j = 0; j < size.columns; j += kPanel) {
        const int64_t columns = std::min(kPanel, size.columns - j);
        amx::multiply({.parts = parts_,
                       .m = size.rows,
                       .n = columns,
                       .k = depth,
                       .a = rows,
                       .b = packed_b(at.columns + j, first, depth),
                       .from = has_sums          ? c + j
                               : row_ != nullptr ? row_ + at.columns + j
                                                 : nullptr,
                       .from_step = has_sums ? ldc : 0,
                       .beta = first == 0 && p_.beta != 0 ? p_.beta : 1.0F,
                       .c = c + j,
                       .ldc = ldc});
      }
    }
    return true;
  }

  int parts_;
  const kernels::PackedProduct<T, C>& p_;
  const float* row_;
  int64_t depth_;
  Buffer<bfloat16> b_;
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

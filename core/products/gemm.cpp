#include <braid/core/products/gemm.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <type_traits>
#include <utility>

#include <braid/core/batch_invariant.h>
#include <braid/core/instruction_set.h>
#include <braid/core/kernels/elements.h>
#include <braid/core/kernels/round_up.h>
#include <braid/core/kernels/scratch.h>
#include <braid/core/parallel.h>
#include <braid/core/platform/machine.h>
#include <braid/core/products/detail/gemm_by_onednn.h>
#include <braid/core/products/detail/gemm_by_tiles.h>
#include <braid/core/products/kernels/amx.h>
#include <braid/core/products/kernels/packed_product.h>

namespace braid {
namespace {

using kernels::divide_up;

/// What multiplies the tiles of a product, one thread each.
enum class Unit {
  onednn,  ///< oneDNN: f32, and bf16 widened to f32
  packed,  ///< braid's packed product: f32, f64, and bf16 widened to f32
};

/// Whether braid's packed product is faster than oneDNN's: few rows of bf16, which are not worth a widened copy of b;
/// few of f32 with a wide transposed b, unless its rows, multiples of 4 KiB, share places in the cache; on AVX2 many
/// rows of a transposed factor, and a b that oneDNN reads in place while its rows, multiples of 2 KiB, share places.
template <class T, class C>
bool is_slow_by_onednn(const Product<T, C>& p) {
  const bool wide = p.b.transposed && p.n >= std::max<std::int64_t>(256, p.k) && p.k % 1024 != 0;
  if (p.m <= kernels::kFewRows && (wide || std::is_same_v<T, bfloat16>)) return true;
  const bool shares = !p.b.transposed && p.n % 512 == 0, many = p.a.transposed && p.m > 128;
  return instruction_set() == InstructionSet::avx2 && (shares || many);
}

/// The unit for a whole product. A tile has fewer rows, and could round otherwise if it chose for itself.
template <class T, class C>
Unit choose_unit(const Product<T, C>& p) {
  const bool may_use_onednn = !std::is_same_v<T, double> && !BatchInvariant::active() && detail::may_use_onednn();
  return may_use_onednn && !is_slow_by_onednn(p) ? Unit::onednn : Unit::packed;
}

/// The product p of other operands, without its bf16 terms.
template <class From, class T, class C>
Product<T, C> with_operands(const From& p, MatrixView<const T> a, MatrixView<const T> b, MatrixView<C> c) {
  return {.m = p.m, .n = p.n, .k = p.k, .a = a, .b = b, .c = c, .alpha = p.alpha, .beta = p.beta, .row = p.row};
}

/// c = beta * c
template <class T, class C>
void scale(const Product<T, C>& p) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    C* const row = p.c.from(i, 0).data;
    if (p.beta == 0)
      std::fill_n(row, p.n, C(0.0F));
    else
      std::transform(row, row + p.n, row, [&](C value) { return static_cast<C>(p.beta * value); });
  }
}

/// The product once its row has been copied to c, to which it adds.
template <class T>
Product<T, Compute<T>> onto_row(Product<T, Compute<T>> p) {
  for (std::int64_t i = 0; i < p.m; ++i) std::copy_n(p.row, p.n, p.c.from(i, 0).data);
  p.row = nullptr;
  p.beta = 1;
  return p;
}

/// A tile of floats or doubles.
template <class T>
void multiply(Unit unit, const Product<T>& p) {
  if (p.row != nullptr) return multiply(unit, onto_row<T>(p));
  if (p.k == 0) return scale(p);
  if constexpr (std::is_same_v<T, float>)
    if (unit == Unit::onednn) return detail::multiply_by_onednn(p);
  const kernels::PackedProductKernels<T> packed = kernels::packed_product_kernels().of<T>();
  kernels::Buffer<T> scratch(packed.scratch(p.m, p.n, p.k));
  packed.multiply(p, scratch.data());
}

/// An operand [rows, columns] as elements of another type, in the same layout without gaps; convert(rows, columns, x,
/// y) is given rows of memory.
template <class T>
struct Converted {
  Converted(std::int64_t rows, std::int64_t columns, auto x, auto convert)
      : memory(rows * columns), view{memory.data(), x.transposed ? rows : columns, x.transposed} {
    if (x.transposed) std::swap(rows, columns);
    convert(rows, columns, x, MatrixView<T>{memory.data(), columns});
  }

  kernels::Buffer<T> memory;
  MatrixView<const T> view;
};

void multiply(Unit unit, Product<bfloat16, float> p) {
  if (p.row != nullptr) p = onto_row<bfloat16>(p);
  if (p.k == 0) return scale(p);
  const auto widen = [](auto... args) { kernels::convert_rows(kernels::element_kernels().widen, args...); };
  const Converted<float> a(p.m, p.k, p.a, widen);
  if (unit == Unit::packed && p.m <= kernels::kFewRows) {
    kernels::Buffer<float> scratch(kernels::kFewRows * p.k);
    const auto few_rows = kernels::packed_product_kernels().f32.multiply_by_bf16;
    const std::int64_t done = few_rows(with_operands(p, a.view, {}, p.c), p.b, scratch.data());
    if (done == p.n) return;
    p = p.tile(0, done, p.m, p.n - done);
  }
  const Converted<float> b(p.k, p.n, p.b, widen);
  multiply(unit, with_operands(p, a.view, b.view, p.c));
}

void multiply(Unit unit, const Product<bfloat16>& p) {
  kernels::Buffer<float> memory(p.m * p.n);
  const MatrixView<float> sums{memory.data(), p.n};
  if (p.beta != 0) kernels::convert_rows(kernels::element_kernels().widen, p.m, p.n, p.c, sums);
  multiply(unit, with_operands(p, p.a, p.b, sums));
  kernels::convert_rows(kernels::element_kernels().round, p.m, p.n, sums, p.c);
}

/// On all threads. Returns false, with c unchanged, if an operand is not finite as bf16.
bool multiply_rounded(const Product<float>& p) {
  std::atomic<bool> finite = true;
  const auto round_rows = [&](std::int64_t rows, std::int64_t columns, auto x, auto y) {
    constexpr std::int64_t kElements = 16384;
    const auto round = kernels::element_kernels().round_finite;
    detail::parallel_for_each(rows, columns, kElements, [&](std::int64_t i) {
      if (!round(x.data + i * x.stride, y.data + i * y.stride, columns)) finite = false;
    });
  };
  const Converted<bfloat16> a(p.m, p.k, p.a, round_rows);
  if (!finite) return false;
  const Converted<bfloat16> b(p.k, p.n, p.b, round_rows);
  if (finite) gemm(with_operands(p, a.view, b.view, p.c));
  return finite;
}

/// Multiplies bf16 by instructions for it, or floats as bf16 terms. Returns false, with c unchanged unless beta is 0,
/// where it does not or a float is not finite as bf16.
template <class T, class C>
bool multiply_as_bf16(const Product<T, C>& p, bool parallel) {
  if (p.alpha != 1 || BatchInvariant::active()) return false;
  if constexpr (std::is_same_v<T, bfloat16>)
    return p.m > kernels::kFewRows && std::min(p.n, p.k) >= 16 && kernels::amx::fast_multiply() != nullptr &&
           detail::gemm_by_tiles(p, parallel);
  if constexpr (std::is_same_v<T, float>) {
    if (p.bf16_terms == 0 || p.k == 0) return false;
    if (instruction_set() == InstructionSet::amx) return detail::gemm_by_tiles(p, parallel);
    return p.bf16_terms == 1 && multiply_rounded(p);
  }
  return false;
}

struct Tile {
  std::int64_t rows, columns;
};

/// Halves a tile along its rows unless its columns are far more; sides are multiples of 16, the width of a vector.
Tile halve(Tile tile) {
  const auto half = [](std::int64_t size) { return divide_up(size, 32) * 16; };
  if (2 * tile.rows >= tile.columns) return {half(tile.rows), tile.columns};
  return {tile.rows, half(tile.columns)};
}

/// Two tiles as soon as that pays for a fork (about 5 us of work), then up to `most` while a tile is long enough (40
/// us) and not too thin: each tile packs its own rows of a and columns of b, which costs 10-20 % at 64 x 64.
Tile choose_tile(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t most) {
  const auto products = [k](Tile tile) { return tile.rows * tile.columns * k; };
  const auto reuse = [](Tile tile) { return tile.rows * tile.columns / (tile.rows + tile.columns); };
  Tile tile{m, n};
  if (products(tile) < 500'000) return tile;
  tile = halve(tile);
  for (int tiles = 2; tiles < most && products(tile) > 4'000'000 && reuse(halve(tile)) >= 48; tiles *= 2)
    tile = halve(tile);
  return tile;
}

/// oneDNN's bits depend on the tiles, so these must not depend on the threads. Those of the packed product do not, and
/// every tile packs anew: one for each thread.
std::int64_t most_tiles(bool packed) {
  constexpr std::int64_t kMost = 16;
  return packed ? std::min(kMost, static_cast<std::int64_t>(std::bit_ceil(static_cast<unsigned>(num_threads()))))
                : kMost;
}

/// For few rows, whose time is that of reading b: 256 KiB to 1 MiB of b per tile, if b has at least two tiles.
Tile choose_tile_of_few_rows(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kElements = 131072;
  return {m, n * k < 2 * kElements ? n : kernels::round_up(divide_up(kElements, k), 64)};
}

/// What multiplies tiles of bf16 faster than f32 is multiplied; null if nothing does.
kernels::amx::Multiply multiply_of_processor() {
  if (instruction_set() == InstructionSet::amx) return kernels::amx::multiply;
  const bool by_avx512 = instruction_set() == InstructionSet::avx512 && platform::has_fast_avx512_bf16();
  return by_avx512 ? kernels::amx::multiply_by_avx512 : nullptr;
}

}  // namespace

kernels::amx::Multiply kernels::amx::fast_multiply() {
  return BatchInvariant::active() ? nullptr : multiply_of_processor();
}

const char* bf16_products() {
  const auto multiply = multiply_of_processor();
  return multiply == nullptr ? "f32" : multiply == kernels::amx::multiply ? "AMX" : "AVX512_BF16";
}

template <class T, class C>
void gemm_serial(const Product<T, C>& p) {
  if (p.m == 0 || p.n == 0 || (std::is_same_v<T, bfloat16> && multiply_as_bf16(p, false))) return;
  multiply(choose_unit(p), p);
}

template <class T, class C>
void gemm(const Product<T, C>& p) {
  if (p.m == 0 || p.n == 0 || multiply_as_bf16(p, true)) return;
  const Unit unit = choose_unit(p);
  const bool packed = unit == Unit::packed;
  const Tile tile = packed && p.m <= kernels::kFewRows ? choose_tile_of_few_rows(p.m, p.n, p.k)
                                                       : choose_tile(p.m, p.n, p.k, most_tiles(packed));
  const std::int64_t across = divide_up(p.n, tile.columns);
  parallel_for(across * divide_up(p.m, tile.rows), 1, [&](std::int64_t index, std::int64_t) {
    const std::int64_t i = index / across * tile.rows, j = index % across * tile.columns;
    multiply(unit, p.tile(i, j, std::min(tile.rows, p.m - i), std::min(tile.columns, p.n - j)));
  });
}

#define BRAID_INSTANTIATE(T, C)                    \
  template void gemm_serial(const Product<T, C>&); \
  template void gemm(const Product<T, C>&);
BRAID_INSTANTIATE(float, float)
BRAID_INSTANTIATE(double, double)
BRAID_INSTANTIATE(bfloat16, bfloat16)
BRAID_INSTANTIATE(bfloat16, float)
#undef BRAID_INSTANTIATE

}  // namespace braid

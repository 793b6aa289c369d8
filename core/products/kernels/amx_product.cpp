#include <algorithm>

#include <braid/core/error.h>
#include <braid/core/products/kernels/amx-inl.h>
#include <braid/core/products/kernels/amx.h>

#if BRAID_HAS_AMX
HWY_PUSH_ATTRIBUTES(BRAID_AMX)
namespace braid::kernels::amx {
namespace {

/// Whether the groups of rows of a and columns of b need their second tile.
struct Halves {
  bool rows, columns;
};

/// Tiles 0 to 3 = the product of a group of rows and one of columns. The order of the terms saves loads.
template <int kTerms>
BRAID_INLINE void multiply_groups(Halves second, std::int64_t depth, const bfloat16* a, const bfloat16* b) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const auto load_a = [&](int term) BRAID_AMX_LAMBDA {
    _tile_loadd(4, a + term * kSize, 64);
    if (second.rows) _tile_loadd(5, a + (kTerms + term) * kSize, 64);
  };
  const auto load_b = [&](int term) BRAID_AMX_LAMBDA {
    _tile_loadd(6, b + term * kSize, 64);
    if (second.columns) _tile_loadd(7, b + (kTerms + term) * kSize, 64);
  };
  const auto multiply = [&]() BRAID_AMX_LAMBDA {
    _tile_dpbf16ps(0, 4, 6);
    if (second.columns) _tile_dpbf16ps(1, 4, 7);
    if (second.rows) _tile_dpbf16ps(2, 5, 6);
    if (second.rows && second.columns) _tile_dpbf16ps(3, 5, 7);
  };
  for (std::int64_t p = 0; p < depth; p += kDepth, a += 2 * kTerms * kSize, b += 2 * kTerms * kSize) {
    load_a(kTerms - 1), load_b(0), multiply();
    if (kTerms == 3) load_a(1), multiply(), load_b(1), multiply();
    if (kTerms >= 2) load_a(0), multiply(), load_b(kTerms - 1), multiply();
    if (kTerms == 3) load_b(0), multiply();
  }
}

/// Sums from (i, j) on that have yet to be added to `from` or rounded, or are at an edge of c.
struct Pending {
  std::int64_t i = 0, j = 0, rows = 0, columns = 0;
};

void finish(const Pending& sums, const PackedProduct& p, const float* values) {
  const __m512 beta = _mm512_set1_ps(p.beta);
  for (std::int64_t v = 0; v < sums.columns; v += 16) {
    const auto mask = static_cast<__mmask16>((1U << std::min<std::int64_t>(16, sums.columns - v)) - 1);
    for (std::int64_t row = 0; row < sums.rows; ++row) {
      const std::int64_t i = sums.i + row, j = sums.j + v;
      __m512 x = _mm512_load_ps(values + row * kGroup + v);
      if (p.from != nullptr) x = _mm512_fmadd_ps(beta, _mm512_maskz_loadu_ps(mask, p.from + i * p.from_stride + j), x);
      store(p, i, j, mask, x);
    }
  }
}

void store_tiles(Halves second, float* to, std::int64_t step) {
  _tile_stored(0, to, 4 * step);
  if (second.columns) _tile_stored(1, to + 16, 4 * step);
  if (second.rows) _tile_stored(2, to + 16 * step, 4 * step);
  if (second.rows && second.columns) _tile_stored(3, to + 16 * step + 16, 4 * step);
}

// GCC 12 does not know that its intrinsics for tiles read and write memory.
BRAID_INLINE void order_memory() { asm volatile("" ::: "memory"); }

template <int kTerms>
void multiply_terms(const PackedProduct& p) {
  const std::int64_t group = packed_size(kTerms, p.k);
  alignas(64) float values[kGroup * kGroup];
  Pending pending;
  order_memory();
  for (std::int64_t j = 0; j < p.n; j += kGroup) {
    for (std::int64_t i = 0; i < p.m; i += kGroup) {
      const std::int64_t rows = std::min(kGroup, p.m - i), columns = std::min(kGroup, p.n - j);
      const Halves second{rows > kLines, columns > kLines};
      multiply_groups<kTerms>(second, p.k, p.a + i / kGroup * group, p.b + j / kGroup * p.b_group);
      finish(pending, p, values);  // while the tile unit is busy
      order_memory();
      if (p.from == nullptr && p.rounded.data == nullptr && rows % kLines == 0 && columns % kLines == 0) {
        store_tiles(second, p.c.data + i * p.c.stride + j, p.c.stride);
        pending = {};
      } else {
        store_tiles(second, values, kGroup);
        pending = {i, j, rows, columns};
      }
      order_memory();
    }
  }
  finish(pending, p, values);
}

struct alignas(64) Configuration {
  std::uint8_t palette = 1, first_row = 0, reserved[14] = {};
  std::uint16_t bytes_of_rows[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

}  // namespace

void multiply(const PackedProduct& p) {
  static constexpr Configuration configuration;
  _tile_loadconfig(&configuration);
  if (p.terms == 3) multiply_terms<3>(p);
  if (p.terms == 2) multiply_terms<2>(p);
  if (p.terms == 1) multiply_terms<1>(p);
  _tile_release();
}

}  // namespace braid::kernels::amx
HWY_POP_ATTRIBUTES

#else

namespace braid::kernels::amx {

void multiply(const PackedProduct&) { throw Error("amx: not available on this processor"); }
void multiply_by_avx512(const PackedProduct& product) { multiply(product); }
void pack_rounded(MatrixView<const float>, std::int64_t, std::int64_t, bfloat16*) { multiply({}); }

template <class T>
bool pack(Side, int, MatrixView<const T>, std::int64_t, std::int64_t, bfloat16*) {
  throw Error("amx: not available on this processor");
}
template bool pack(Side, int, MatrixView<const float>, std::int64_t, std::int64_t, bfloat16*);
template bool pack(Side, int, MatrixView<const bfloat16>, std::int64_t, std::int64_t, bfloat16*);

}  // namespace braid::kernels::amx

#endif

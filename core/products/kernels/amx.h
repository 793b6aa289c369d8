#pragma once
#include <cstdint>

#include <braid/core/product.h>

/// Products by AMX, an instruction set that multiplies tiles of 16 x 32 bf16 elements and sums in f32. Operands are
/// bf16, or f32 split into up to three bf16 terms. Packing needs AVX512_BF16, which also multiplies tiles of one term.
namespace braid::kernels::amx {

// Sizes of a tile, in bf16 elements.
inline constexpr std::int64_t kLines = 16, kDepth = 32, kSize = kLines * kDepth;

/// Rows are packed in groups: two tiles for every 32 columns, and for each term.
inline constexpr std::int64_t kGroup = 32;

/// bf16 elements per group.
constexpr std::int64_t packed_size(int terms, std::int64_t depth) { return (depth + 31) / 32 * terms * 32 * kGroup; }

enum class Side { left, right };

/// Packs `lines` rows of x, each of length `depth`: rows of a for the left side, of b's transpose for the right side.
/// T is float, split into 1 to 3 terms of 8 bits, the largest first, or bfloat16, which is one term. Returns false if a
/// float is not finite as bf16.
template <class T>
bool pack(Side side, int terms, MatrixView<const T> x, std::int64_t lines, std::int64_t depth, bfloat16* to);

/// bf16 elements of all groups of `lines`, in one term. In a group, those of depth p on begin at packed_size(1, p).
constexpr std::int64_t packed_lines(std::int64_t lines, std::int64_t depth) {
  return (lines + kGroup - 1) / kGroup * packed_size(1, depth);
}

/// Packs rows of a left side, each rounded to bf16, in the order of bf16 elements.
void pack_rounded(MatrixView<const float> x, std::int64_t lines, std::int64_t depth, bfloat16* to);

/// c [m, n] = a b + beta * from, of packed operands. `from` may be null or c; its rows are from_stride apart, 0 if one
/// row is added to all of c's. The products of terms that exceed 2^(-8 terms) of the whole are summed. The bits of an
/// element do not depend on m and n.
struct PackedProduct {
  int terms;
  std::int64_t m, n, k;
  const bfloat16 *a, *b;
  const float* from;
  std::int64_t from_stride;
  float beta;
  MatrixView<float> c;
  MatrixView<bfloat16> rounded{};                ///< if not null, takes the sums, rounded, in place of c
  std::int64_t b_group = packed_size(terms, k);  ///< elements between groups of b, which may be deeper than k
};

/// By AMX.
void multiply(const PackedProduct& product);
/// By AVX512_BF16, of one term.
void multiply_by_avx512(const PackedProduct& product);

/// Of these the one that multiplies tiles of one term faster than f32 is multiplied, on this processor with this
/// instruction_set(). Null if none does, and in a BatchInvariant scope.
using Multiply = void (*)(const PackedProduct& product);
Multiply fast_multiply();

}  // namespace braid::kernels::amx

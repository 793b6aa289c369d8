#pragma once
#include <cstdint>

#include <braid/core/bfloat16.h>
#include <braid/core/products/kernels/packed_product.h>

/// Products by AMX, the unit of some processors that multiplies tiles of 16 x 32 numbers of bf16 and adds up in f32.
namespace braid::kernels::amx {

/// Whether this processor has it, and the system lets programs use it.
bool is_available();

/// Lines are packed in groups: two tiles for every 32 of their depth, and for each part.
inline constexpr std::int64_t kGroup = 32;

/// How many numbers of bf16 a group takes.
constexpr std::int64_t packed_size(int parts, std::int64_t depth) { return (depth + 31) / 32 * parts * 32 * kGroup; }

enum class Side { left, right };

/// Packs lines of float or bfloat16. A float is the sum of up to three parts of 8 bits, the largest first; a bfloat16
/// is one. Returns false when a float is not finite as bf16.
template <class T>
bool pack(Side side, int parts, Lines<T> x, std::int64_t lines, std::int64_t depth, bfloat16* to);

/// c [m, n] = a b + beta * from, where a and b are packed and `from`, if it is not null, lies as c does, or has one row
/// for all if its step is 0. Of the products of parts, those are made that are more than 2^(-8 parts) of the whole. The
/// bits of an element do not depend on m and n.
struct Product {
  int parts;
  std::int64_t m, n, k;
  const bfloat16 *a, *b;
  const float* from;
  std::int64_t from_step;
  float beta;
  float* c;
  std::int64_t ldc;
};

void multiply(const Product& product);

}  // namespace braid::kernels::amx

#pragma once
#include <string_view>

namespace braid {

/// How exact products of f32 matrices have to be, in PyTorch's words.
enum class MatmulPrecision {
  highest,  ///< as exact as f32; factors may be sums of three bf16: six products of bf16
  high,     ///< to 2^-16 of their factors, which may be sums of two bf16: three products of bf16
  medium,   ///< to 2^-8 of their factors, which may be rounded to bf16: one product of bf16
};

/// For matrix_product and all that rests on it, in this process. What is allowed is done where it is faster: `medium`
/// where bf16_products() tells of a unit, `highest` and `high` by AMX, where all three sides are at least 64 and long
/// enough for splitting to pay. Products with a factor that is not finite, or too large for bf16, are as exact as ever;
/// in the others what lies below 2^-126, in parts or sums, counts as zero, so that numbers below 2^-110 and sums below
/// 2^-100 lose digits, and a sum within 2^-7 of the largest float may become infinite. Inside of a BatchInvariant
/// scope, in batches of several matrices, and in the fused ops of attention and hyper-connections, products stay f32's
/// own.
void set_matmul_precision(MatmulPrecision precision);
/// `highest` until it is set.
MatmulPrecision matmul_precision();

/// "highest", "high" or "medium".
std::string_view name(MatmulPrecision precision);
/// Throws ValueError when it is none of them.
MatmulPrecision matmul_precision(std::string_view name);

namespace detail {
/// How many bf16 a factor of an f32 product is the sum of, here and now; 0: the product is f32's own.
int parts_of_f32();
}  // namespace detail

}  // namespace braid

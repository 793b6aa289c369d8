#pragma once
#include <string_view>

namespace braid {

/// How exact products of f32 matrices have to be, by PyTorch's names.
enum class MatmulPrecision {
  highest,  ///< as exact as f32; operands may be split into three bf16 terms: six products of bf16
  high,     ///< to 2^-16 of the operands, which may be split into two bf16 terms: three products of bf16
  medium,   ///< to 2^-8 of the operands, which may be rounded to bf16: one product of bf16
};

/// Sets the precision of matrix_product, and of all that uses it, for this process. bf16 is used only where it is
/// faster: for `medium` where bf16_products() is not "f32", for `highest` and `high` with AMX, if m, n and k are at
/// least 64 and long enough for splitting to pay. Products with an operand that is not finite, or too large for bf16,
/// are computed in f32. In the others, terms and sums below 2^-126 count as zero, so that elements below 2^-110 and
/// sums below 2^-100 lose digits, and a sum within 2^-7 of the largest float may become infinite. Products in a
/// BatchInvariant scope, in batches of several matrices, and in the fused ops of attention and hyper-connections are
/// always computed in f32.
void set_matmul_precision(MatmulPrecision precision);
/// The precision in this process, `highest` unless set.
MatmulPrecision matmul_precision();
/// The bf16 terms that matrix_product may split each f32 operand into, for the current precision on this processor; 0
/// if it computes in f32.
int bf16_terms_per_f32();

/// "highest", "high" or "medium". Throws ValueError for any other value.
std::string_view name(MatmulPrecision precision);
/// The precision with this name. Throws ValueError if there is none.
MatmulPrecision matmul_precision(std::string_view name);

}  // namespace braid

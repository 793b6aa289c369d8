#pragma once
#include <initializer_list>
#include <span>
#include <string_view>

#include <braid/autograd/tape.h>

namespace braid {

/// Einstein's summation for one or two operands: each axis has a letter, letters missing in the output are summed over,
/// a letter twice in one operand means its diagonal. Two operands run as one batched matrix product.
///
///     einsum("bij,bjk->bik", {a, b});  // batched product
///     einsum("bij->ji", {a});          // sum over b, transposed
///
/// Throws ValueError when the text is not understood (the output after -> is required, there is no ellipsis),
/// ShapeError when it does not fit the operands, DTypeError when the operands' dtypes differ.
Var einsum(std::string_view text, std::span<const Var> operands);
inline Var einsum(std::string_view text, std::initializer_list<Var> operands) {
  return einsum(text, std::span(operands.begin(), operands.size()));
}

}  // namespace braid

#pragma once
#include <concepts>
#include <string_view>

#include <braid/autograd/tape.h>

namespace braid {

/// Einstein's summation: each axis has a letter, letters missing in the output are summed over, a letter twice in one
/// operand means its diagonal. An ellipsis is any number of axes, which broadcast, aligned at the last one.
///
///     einsum("bij,bjk->bik", a, b);            // batched product
///     einsum("...ij->...ji", a);               // the last two axes transposed
///     einsum("bth,hio,btio->bto", gate, w, x);  // three at once
///
/// Without ->, as in `einsum("ij,jk", a, b)`, the output has the axes of an ellipsis and then the letters that occur
/// once, in alphabetical order, capitals first.
///
/// Two operands run as one batched matrix product. With more, the pair whose product has the fewest elements (the first
/// such pair) is multiplied first, until one operand is left. With bf16 first, others may be f32, and sums are f32.
/// Throws ValueError for text that cannot be parsed or an intermediate product of more than 8 axes, ShapeError when it
/// does not fit the operands, DTypeError when the operands' dtypes differ.
Var einsum(std::string_view text, List<Var> operands);
template <std::convertible_to<Var>... Operands>
  requires(sizeof...(Operands) > 0)
Var einsum(std::string_view text, const Operands&... operands) {
  return einsum(text, {Var(operands)...});
}

}  // namespace braid

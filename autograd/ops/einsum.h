#pragma once
#include <initializer_list>
#include <span>
#include <string_view>

#include <braid/autograd/tape.h>

namespace braid {

/// Einstein's summation: each axis has a letter, letters missing in the output are summed over, a letter twice in one
/// operand means its diagonal. An ellipsis stands for any number of axes, which broadcast from the last one on.
///
///     einsum("bij,bjk->bik", {a, b});            // batched product
///     einsum("...ij->...ji", {a});               // the last two axes transposed
///     einsum("bth,hio,btio->bto", {gate, w, x});  // three at once
///
/// Two operands run as one batched matrix product. Of more, the pair whose product has the fewest elements comes first
/// (of equal ones the first pair), until one is left. Throws ValueError when the text is not understood (the output
/// after -> is required) or a product on the way has more than 8 axes, ShapeError when it does not fit the operands,
/// DTypeError when the operands' dtypes differ.
Var einsum(std::string_view text, std::span<const Var> operands);
inline Var einsum(std::string_view text, std::initializer_list<Var> operands) {
  return einsum(text, std::span(operands.begin(), operands.size()));
}

}  // namespace braid

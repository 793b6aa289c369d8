// einsum: any subscripts with any small shapes, forward and backward.
#include <braid/autograd/ops/einsum.h>
#include <braid/autograd/ops/sum.h>

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse([&] {
    fuzz::Bytes bytes(data, size);
    Tape tape;
    std::vector<Var> operands;
    for (int count = bytes.in(0, 3); count > 0; --count) operands.push_back(tape.watch(ones(bytes.shape())));
    const Var y = einsum(bytes.rest(), operands);
    tape.backward(sum(y));
    for (const Var& x : operands)
      fuzz::require(tape.gradient(x).shape() == x.shape(), "a gradient has the shape of its operand");
  });
}

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
    for (int count = bytes.in(0, 5); count > 0; --count)
      operands.push_back(tape.watch(ones(bytes.shape(), DType::f64)));
    const Var y = sum(einsum(bytes.rest(), operands));
    tape.backward(y);
    for (const Var& x : operands) {
      const Tensor gradient = tape.gradient(x);
      fuzz::require(gradient.shape() == x.shape(), "a gradient has the shape of its operand");
      if (y.item() < 0x1p53)  // small enough for integers to be exact
        fuzz::require(reduce_sum(gradient).item() == y.item(), "einsum is linear in each operand");
    }
  });
}

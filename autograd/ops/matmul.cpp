#include <braid/autograd/ops/matmul.h>

#include <braid/core/products/matmul.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

/// x as one matrix, its leading axes stacked: [..., m, k] -> [... m, k].
Tensor stacked(const Tensor& x) { return x.reshape({x.shape().axes(0, x.rank() - 1).numel(), x.size(-1)}); }

/// da = dy b^T, summed over the axes along which a was broadcast.
Tensor vjp_a(const Tensor& dy, const Shape& a, const Tensor& b) { return sum_to(matrix_product(dy, b.transpose()), a); }

/// db = a^T dy, summed over the axes along which b was broadcast; when b is one matrix for all of a, the sum is part
/// of a single product.
Tensor vjp_b(const Tensor& dy, const Tensor& a, const Shape& b) {
  if (b.rank() == 2) return matrix_product(stacked(a).transpose(), stacked(dy));
  return sum_to(matrix_product(a.transpose(), dy), b);
}

}  // namespace

Var matmul(const Var& a, const Var& b) {
  return record("matmul", matrix_product(a.value(), b.value()), {a, b},
                [a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) {
                  return std::vector{needs[0] ? vjp_a(dy, a.shape(), b) : Tensor(),
                                     needs[1] ? vjp_b(dy, a, b.shape()) : Tensor()};
                });
}

}  // namespace braid

#include <braid/autograd/ops/matmul.h>

#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/core/products/matmul.h>

namespace braid {
namespace {

/// da = dy b^T and db = a^T dy, summed over the axes along which a and b were broadcast; when b is one matrix for all
/// of a, the sum is part of a single product.
std::vector<Var> vjp(const Var& dy, const Var& a, const Var& b, const Needs& needs) {
  const auto da = [&] { return detail::sum_to(matmul(dy, transpose(b)), a.shape()); };
  const auto db = [&] {
    return b.rank() == 2 ? matmul(transpose(detail::as_rows(a)), detail::as_rows(dy))
                         : detail::sum_to(matmul(transpose(a), dy), b.shape());
  };
  return {needs[0] ? da() : Var(), needs[1] ? db() : Var()};
}

/// Vectors as matrices, and without their axes of size 1 in the result.
Var with_vectors(const Var& a, const Var& b) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  check_shape(a.rank() > 0 && b.rank() > 0, "matmul: inputs must have at least 1 axis but have shapes {} and {}",
              a.shape(), b.shape());
  check_shape(a.size(-1) == b.size(column ? -1 : -2), "matmul: the last axis of {} does not match the {} axis of {}",
              a.shape(), column ? "only" : "second-last", b.shape());
  const Var product = matmul(row ? expand_dims(a, 0) : a, column ? expand_dims(b, 1) : b);
  const Var y = column ? squeeze(product, -1) : product;
  return row ? squeeze(y, column ? -1 : -2) : y;
}

}  // namespace

Var matmul(const Var& a, const Var& b) {
  if (a.rank() == 1 || b.rank() == 1) return with_vectors(a, b);
  return record(
      "matmul", matrix_product(a.value(), b.value()), {a, b},
      [a = a.value(), b = b.value()](const Tensor& dy, const Needs& needs) { return vjp(dy, a, b, needs); },
      [](const Applied& op) { return vjp(op.dy(), op.x(0), op.x(1), op.needs); });
}

}  // namespace braid

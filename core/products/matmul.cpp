#include <braid/core/products/matmul.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include <braid/core/parallel.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul_precision.h>

namespace braid {
namespace {

/// Matrices in the last two axes, with contiguous rows or columns; copied if neither are.
struct Operand {
  Tensor tensor;
  bool transposed = false;
  std::int64_t stride = 1;

  explicit Operand(const Tensor& t) : tensor(t) {
    const int row = t.rank() - 2, column = row + 1;
    const auto unit = [&](int axis, int other) {
      const std::int64_t size = tensor.size(axis);
      return (tensor.strides()[axis] == 1 || size == 1) && tensor.strides()[other] >= std::max<std::int64_t>(1, size);
    };
    if (!unit(column, row) && !unit(row, column)) tensor = tensor.clone();
    transposed = !unit(column, row) && unit(row, column);
    stride =
        std::max<std::int64_t>({1, tensor.strides()[transposed ? column : row], tensor.size(transposed ? -2 : -1)});
  }

  /// The matrix at an offset in elements.
  template <class T>
  MatrixView<const T> view(std::int64_t offset = 0) const {
    return {tensor.data<T>() + offset, stride, transposed};
  }
};

/// Element offsets of each matrix when the leading axes are broadcast to `lead`.
std::vector<std::int64_t> matrix_offsets(const Tensor& t, const Shape& lead) {
  const Tensor view = t.broadcast_to(lead.concat(t.shape().axes(t.rank() - 2, t.rank())));
  std::vector<std::int64_t> offsets{0};
  for (int axis = 0; axis < lead.rank(); ++axis) {
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * lead[axis]);
    for (const std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < lead[axis]; ++i) next.push_back(offset + i * view.strides()[axis]);
    offsets = std::move(next);
  }
  return offsets;
}

Shape product_shape(const char* op, const Tensor& a, const Tensor& b) {
  check_same_dtype(op, a, b);
  check_shape(a.rank() >= 2 && b.rank() >= 2, "{}: inputs must have at least 2 axes but have shapes {} and {}", op,
              a.shape(), b.shape());
  check_shape(a.size(-1) == b.size(-2), "{}: the last axis of {} does not match the second-last axis of {}", op,
              a.shape(), b.shape());
  const Shape lead = broadcast_shapes(op, a.shape().axes(0, a.rank() - 2), b.shape().axes(0, b.rank() - 2));
  return lead.concat({a.size(-2), b.size(-1)});
}

/// The bf16 terms of a product's operands, 0 where splitting does not pay: where a side is short, as for maps of
/// streams and in generation, or where each element that is split is used in few products.
template <class T>
int bf16_terms(std::int64_t m, std::int64_t n, std::int64_t k) {
  if constexpr (!std::is_same_v<T, float>) return 0;
  const int terms = bf16_terms_per_f32();
  return std::min({m, n, k}) >= 64 && std::min(k, m * n / (m + n)) >= 32 * terms ? terms : 0;
}

/// c = a b + beta c, or a b + row, c contiguous with the product's shape.
template <class T, class C>
void multiply(const Tensor& a_in, const Tensor& b_in, Compute<T> beta, Tensor& c, const Compute<T>* row = nullptr) {
  if (c.numel() == 0) return;
  const bool tall = b_in.rank() == 2 && a_in.rank() > 2 && a_in.is_contiguous();  // one matrix b for all rows of a
  const Operand a(tall ? a_in.reshape({c.numel() / c.size(-1), a_in.size(-1)}) : a_in), b(b_in);
  const Shape lead = tall ? Shape() : c.shape().axes(0, c.rank() - 2);
  const std::vector<std::int64_t> at_a = matrix_offsets(a.tensor, lead), at_b = matrix_offsets(b.tensor, lead);
  const std::int64_t m = a.tensor.size(-2), n = c.size(-1), k = a_in.size(-1);
  const MatrixView<C> all{c.mutable_data<C>(), n};
  const auto product = [&](std::int64_t i) {
    return Product<T, C>{.m = m,
                         .n = n,
                         .k = k,
                         .a = a.view<T>(at_a[i]),
                         .b = b.view<T>(at_b[i]),
                         .c = all.from(i * m, 0),
                         .beta = beta,
                         .row = row};
  };
  if (at_a.size() == 1) {
    Product<T, C> one = product(0);
    one.bf16_terms = bf16_terms<T>(m, n, k);
    return gemm(one);
  }
  detail::parallel_for_each(lead.numel(), m * n * k, 32768, [&](std::int64_t i) { gemm_serial(product(i)); });
}

void multiply(const char* op, const Tensor& a, const Tensor& b, float beta, Tensor& c) {
  dispatch_float_or_bf16(op, a.dtype(), [&]<class T>(T) {
    if (c.dtype() == a.dtype()) return multiply<T, T>(a, b, beta, c);
    if constexpr (std::is_same_v<T, bfloat16>) multiply<bfloat16, float>(a, b, beta, c);
  });
}

}  // namespace

Tensor matrix_product(const Tensor& a, const Tensor& b, const char* op, std::optional<DType> dtype) {
  Tensor c(product_shape(op, a, b), dtype.value_or(a.dtype()));
  check_parameter_dtype(op, a, c);
  multiply(op, a, b, 0, c);
  return c;
}

Tensor product_plus_row(const Tensor& a, const Tensor& b, const Tensor& row, const char* op) {
  Tensor c(product_shape(op, a, b), a.dtype());
  check_dtype(row.dtype() == compute_dtype(a.dtype()), "{}: the row must have dtype {} but has {}", op,
              name(compute_dtype(a.dtype())), name(row.dtype()));
  check_shape(c.rank() == 2 && row.shape() == Shape{c.size(1)},
              "{}: a row for the product {} must have shape [{}] but has {}", op, c.shape(), c.size(-1), row.shape());
  const Tensor added = row.contiguous();
  dispatch_float_or_bf16(op, a.dtype(), [&]<class T>(T) { multiply<T, T>(a, b, 0, c, added.data<Compute<T>>()); });
  return c;
}

void accumulate_product(const Tensor& a, const Tensor& b, Tensor& c, const char* op) {
  const Shape shape = product_shape(op, a, b);
  check_same_dtype(op, a, c);
  check_shape(c.shape() == shape && c.is_contiguous(), "{}: c must be contiguous with shape {} but has {}", op, shape,
              c.shape());
  multiply(op, a, b, 1, c);
}

}  // namespace braid

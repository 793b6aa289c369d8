#include <braid/core/products/matmul.h>

#include <algorithm>
#include <vector>

#include <braid/core/batch_invariant.h>
#include <braid/core/parallel.h>
#include <braid/core/products/detail/gemm_in_parts.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul_precision.h>

namespace braid {
namespace {

/// The last two axes as gemm reads them: rows `stride` apart, transposed or not; copied when neither axis has unit
/// step.
struct Operand {
  Tensor tensor;
  bool transposed = false;
  std::int64_t stride = 1;

  explicit Operand(const Tensor& t) : tensor(t) {
    const auto row = static_cast<std::size_t>(t.rank() - 2), column = row + 1;
    const auto unit = [&](std::size_t axis, std::size_t other) {
      return (tensor.strides()[axis] == 1 || tensor.size(static_cast<int>(axis)) == 1) &&
             tensor.strides()[other] >= std::max<std::int64_t>(1, tensor.size(static_cast<int>(axis)));
    };
    if (!unit(column, row) && !unit(row, column)) tensor = tensor.clone();
    transposed = !unit(column, row) && unit(row, column);
    stride =
        std::max<std::int64_t>({1, tensor.strides()[transposed ? column : row], tensor.size(transposed ? -2 : -1)});
  }
};

/// Element offsets of each matrix when the leading axes are broadcast to `lead`.
std::vector<std::int64_t> matrix_offsets(const Tensor& t, const Shape& lead) {
  const Tensor view = t.broadcast_to(lead.concat(t.shape().axes(t.rank() - 2, t.rank())));
  std::vector<std::int64_t> offsets{0};
  for (int axis = 0; axis < lead.rank(); ++axis) {
    std::vector<std::int64_t> next;
    next.reserve(offsets.size() * static_cast<std::size_t>(lead[axis]));
    for (const std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < lead[axis]; ++i)
        next.push_back(offset + i * view.strides()[static_cast<std::size_t>(axis)]);
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

/// Whether it pays to split the factors of a product: not where they are short, as maps of streams and the rows of
/// generation, nor where each number that is split serves few products.
bool is_worth_splitting(int parts, std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::min({m, n, k}) >= 64 && std::min(k, m * n / (m + n)) >= 32 * parts;
}

/// One product, by what matmul_precision() allows.
template <class T, class C>
void multiply(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
              std::int64_t lda, const T* b, std::int64_t ldb, Compute<T> beta, C* c, std::int64_t ldc,
              const Compute<T>* row) {
  if constexpr (std::is_same_v<T, float>) {
    const int parts = BatchInvariant::active() ? 0 : detail::parts_of_f32();
    if (parts > 0 && is_worth_splitting(parts, m, n, k) &&
        detail::gemm_in_parts(parts, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc, row))
      return;
  }
  gemm<T>(transpose_a, transpose_b, m, n, k, Compute<T>{1}, a, lda, b, ldb, beta, c, ldc, row);
}

/// c = a b + beta c, or a b + row, c contiguous with the product's shape.
template <class T, class C>
void multiply(const Tensor& a_in, const Tensor& b_in, Compute<T> beta, Tensor& c, const Compute<T>* row = nullptr) {
  if (c.numel() == 0) return;
  // One matrix b for all rows of a: a single tall product.
  if (b_in.rank() == 2 && a_in.rank() > 2 && a_in.is_contiguous()) {
    Tensor flat = a_in.reshape({c.numel() / c.size(-1), a_in.size(-1)});
    const Operand b(b_in);
    return multiply(false, b.transposed, flat.size(0), b_in.size(1), flat.size(1), flat.data<T>(),
                    std::max<std::int64_t>(1, flat.size(1)), b.tensor.template data<T>(), b.stride, beta,
                    c.mutable_data<C>(), std::max<std::int64_t>(1, c.size(-1)), row);
  }
  const Operand a(a_in), b(b_in);
  const std::int64_t m = c.size(-2), n = c.size(-1), k = a_in.size(-1), ldc = std::max<std::int64_t>(1, n);
  const Shape lead = c.shape().axes(0, c.rank() - 2);
  const std::vector<std::int64_t> at_a = matrix_offsets(a.tensor, lead), at_b = matrix_offsets(b.tensor, lead);
  const T *pa = a.tensor.template data<T>(), *pb = b.tensor.template data<T>();
  C* pc = c.mutable_data<C>();
  if (at_a.size() == 1)
    return multiply(a.transposed, b.transposed, m, n, k, pa, a.stride, pb, b.stride, beta, pc, ldc, row);
  const std::int64_t block = std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, m * n * k));
  parallel_for(lead.numel(), block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto batch = static_cast<std::size_t>(i);
      gemm_serial<T>(a.transposed, b.transposed, m, n, k, Compute<T>{1}, pa + at_a[batch], a.stride, pb + at_b[batch],
                     b.stride, beta, pc + i * m * n, ldc);
    }
  });
}

void multiply(const char* op, const Tensor& a, const Tensor& b, float beta, Tensor& c) {
  dispatch_float_or_bf16(op, a.dtype(), [&](auto zero) {
    using T = decltype(zero);
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
  dispatch_float_or_bf16(op, a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    multiply<T, T>(a, b, 0, c, added.data<Compute<T>>());
  });
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

#include <braid/autograd/ops/cross_entropy.h>

#include <braid/autograd/kernels/cross_entropy.h>
#include <braid/autograd/kernels/rows.h>

namespace braid {
namespace {

using kernels::Rows;

/// The index of element `at` of a row-major tensor, `[1, 2]` or `[3]`.
Shape index_of(std::int64_t at, const Shape& shape) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; at /= shape[axis--])
    index[static_cast<std::size_t>(axis)] = at % shape[axis];
  return Shape(index);
}

/// How many targets count. Throws ValueError unless each is a class or ignored.
std::int64_t count_targets(const Tensor& targets, std::int64_t classes, std::int32_t ignore_index) {
  const std::int32_t* target = targets.data<std::int32_t>();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    if (target[i] == ignore_index) continue;
    check_value(0 <= target[i] && target[i] < classes,
                "cross_entropy: targets must lie in [0, {}) or equal ignore_index {} but the one at {} is {}", classes,
                ignore_index, index_of(i, targets.shape()), target[i]);
    ++count;
  }
  return count;
}

struct Loss {
  Tensor mean;       // []
  Tensor logsumexp;  // [rows]
};

Loss forward(const Tensor& logits, const Tensor& targets, std::int32_t ignore_index, std::int64_t count) {
  const Rows rows(logits.shape());
  Tensor logsumexp({rows.count}, logits.dtype());
  return dispatch_float("cross_entropy", logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = logits.data<T>();
    T* lse = logsumexp.mutable_data<T>();
    rows.for_each_block([&](std::int64_t first, std::int64_t n, std::int64_t) {
      kernels::logsumexp({n, rows.width, x + first * rows.width}, lse + first);
    });
    double sum = 0;
    const std::int32_t* target = targets.data<std::int32_t>();
    for (std::int64_t row = 0; row < rows.count; ++row)
      if (target[row] != ignore_index) sum += static_cast<double>(lse[row]) - x[row * rows.width + target[row]];
    return Loss{scalar(count == 0 ? 0 : sum / static_cast<double>(count), logits.dtype()), logsumexp};
  });
}

/// dlogits = scale * (softmax(logits) - onehot(targets)), zero where the target is ignored.
Tensor backward(double scale, const Tensor& logits, const Tensor& logsumexp, const Tensor& targets,
                std::int32_t ignore_index) {
  const Rows rows(logits.shape());
  Tensor dlogits(logits.shape(), logits.dtype());
  dispatch_float("cross_entropy", logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* dx = dlogits.mutable_data<T>();
    rows.for_each_block([&](std::int64_t first, std::int64_t n, std::int64_t) {
      const std::int64_t at = first * rows.width;
      kernels::cross_entropy_vjp({n, rows.width, logits.data<T>() + at}, logsumexp.data<T>() + first,
                                 targets.data<std::int32_t>() + first, ignore_index, scale, dx + at);
    });
  });
  return dlogits;
}

}  // namespace

Var cross_entropy(const Var& logits, const Tensor& targets, std::int32_t ignore_index) {
  check_shape(logits.rank() >= 1, "cross_entropy: logits must have at least one axis but have shape {}",
              logits.shape());
  check_dtype(targets.dtype() == DType::i32, "cross_entropy: targets must have dtype i32 but have {}",
              name(targets.dtype()));
  check_shape(targets.shape() == logits.shape().without(-1),
              "cross_entropy: targets must have shape {} to match logits {} but have {}", logits.shape().without(-1),
              logits.shape(), targets.shape());
  const Tensor x = logits.value().contiguous(), ids = targets.contiguous();
  const std::int64_t count = count_targets(ids, logits.size(-1), ignore_index);
  auto [loss, logsumexp] = forward(x, ids, ignore_index, count);
  return record("cross_entropy", loss, {logits},
                [x, ids, logsumexp = logsumexp, ignore_index, count](const Tensor& dy) {
                  const double scale = count == 0 ? 0 : dy.item() / static_cast<double>(count);
                  return backward(scale, x, logsumexp, ids, ignore_index);
                });
}

}  // namespace braid

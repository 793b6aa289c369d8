#include <braid/autograd/ops/cross_entropy.h>

#include <algorithm>
#include <numeric>

#include <braid/autograd/kernels/cross_entropy.h>

namespace braid {
namespace {

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

/// The inputs of the loss.
struct Labeled {
  Tensor logits;   // [..., V]
  Tensor targets;  // [...]
  std::int32_t ignore_index;
  std::int64_t count;  // of the targets that are not ignored

  template <class T>
  operator kernels::LabeledRows<T>() const {
    return {kernels::Rows(logits.shape()), kernels::In{logits}, kernels::In{targets}, ignore_index};
  }
};

struct Loss {
  Tensor mean;       // []
  Tensor logsumexp;  // [rows]
};

Loss forward(const Labeled& in) {
  const DType dtype = in.logits.dtype();
  Tensor logsumexp({in.targets.numel()}, dtype), losses({in.targets.numel()}, dtype);
  return dispatch_float("cross_entropy", dtype, [&](auto zero) {
    using T = decltype(zero);
    T* loss = losses.mutable_data<T>();
    kernels::cross_entropy_kernels().of<T>().forward(in, logsumexp.mutable_data<T>(), loss);
    const double sum = std::accumulate(loss, loss + losses.numel(), 0.0);
    return Loss{scalar(sum / static_cast<double>(std::max<std::int64_t>(in.count, 1)), dtype), logsumexp};
  });
}

/// dlogits = dy / count * (softmax(logits) - onehot(targets)), zero where the target is ignored.
Tensor backward(double dy, const Labeled& in, const Tensor& logsumexp) {
  Tensor dlogits(in.logits.shape(), in.logits.dtype());
  const double scale = dy / static_cast<double>(std::max<std::int64_t>(in.count, 1));
  kernels::cross_entropy_kernels().dispatch("cross_entropy", dlogits.dtype(), [&](const auto& kernel) {
    kernel.vjp(in, kernels::In{logsumexp}, scale, kernels::Out{dlogits});
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
  const Tensor ids = targets.contiguous();
  const std::int64_t count = count_targets(ids, logits.size(-1), ignore_index);
  const Labeled in{logits.value().contiguous(), ids, ignore_index, count};
  const Loss loss = forward(in);
  return record("cross_entropy", loss.mean, {logits},
                [in, logsumexp = loss.logsumexp](const Tensor& dy) { return backward(dy.item(), in, logsumexp); });
}

}  // namespace braid

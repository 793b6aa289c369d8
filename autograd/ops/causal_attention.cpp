#include <braid/autograd/ops/causal_attention.h>

#include <braid/autograd/kernels/attention.h>
#include <braid/core/kernels/scratch.h>
#include <braid/core/reduce.h>

namespace braid {
namespace {

using kernels::kAttentionBlock;
using kernels::Scratch;

/// One piece of work: a range of 64-row blocks of one head.
struct Task {
  std::int64_t chunk, head;
  std::int64_t offset;       // of the head's first element in a tensor [B, T, H, D]
  std::int64_t first, last;  // blocks
};

/// How the work is cut, by the shape alone: by heads, and where there are fewer than 16 also along the sequence.
struct Tasks {
  std::int64_t length, heads, depth;
  std::int64_t all_heads, blocks, chunks;

  explicit Tasks(const Shape& shape)  // [B, T, H, D]
      : length(shape[1]),
        heads(shape[2]),
        depth(shape[3]),
        all_heads(shape[0] * heads),
        blocks((length + kAttentionBlock - 1) / kAttentionBlock),
        chunks(std::clamp<std::int64_t>(16 / std::max<std::int64_t>(all_heads, 1), 1,
                                        std::max<std::int64_t>(blocks, 1))) {}

  template <class F>
  void for_each(F f) const {
    if (length * depth == 0) return;
    parallel_for(all_heads * chunks, 1, [&](std::int64_t index, std::int64_t) {
      const std::int64_t chunk = index % chunks, head = index / chunks;
      const std::int64_t offset = (head / heads * length * heads + head % heads) * depth;
      f(Task{chunk, head, offset, chunk * blocks / chunks, (chunk + 1) * blocks / chunks});
    });
  }

  template <class T>
  kernels::AttentionHead<T> head_at(std::int64_t offset, const Tensor& q, const Tensor& k, const Tensor& v) const {
    return {length, depth, heads * depth, q.data<T>() + offset, k.data<T>() + offset, v.data<T>() + offset};
  }
};

struct Attended {
  Tensor y;          // [B, T, H, D]
  Tensor logsumexp;  // [B, H, T]
};

Attended forward(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tasks tasks(q.shape());
  Tensor y(q.shape(), q.dtype()), logsumexp({q.size(0), q.size(2), q.size(1)}, q.dtype());
  dispatch_float("causal_attention", q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T *py = y.mutable_data<T>(), *lse = logsumexp.mutable_data<T>();
    const auto kernel = kernels::attention_kernels().of<T>();
    Scratch<T> scratch(kernels::attention_scratch(tasks.length, tasks.depth));
    tasks.for_each([&](const Task& task) {
      scratch.lend([&](T* buffer) {
        kernel.forward(tasks.head_at<T>(task.offset, q, k, v), task.first, task.last, py + task.offset,
                       lse + task.head * tasks.length, buffer);
      });
    });
  });
  return {y, logsumexp};
}

/// dv = p^T dy, ds = p * (dy v^T - sum(dy * y)), dq = ds k / sqrt(D), dk = ds^T q / sqrt(D) with the probabilities p.
/// A task has all of dk and dv of its keys; its share of dq is added to the others' in order.
std::vector<Tensor> backward(const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v,
                             const Attended& result) {
  const Tasks tasks(q.shape());
  Tensor dk(q.shape(), q.dtype()), dv(q.shape(), q.dtype());
  Tensor dqs(q.shape().inserted(0, tasks.chunks), q.dtype());
  dispatch_float("causal_attention", q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T *pdq = dqs.mutable_data<T>(), *pdk = dk.mutable_data<T>(), *pdv = dv.mutable_data<T>();
    const auto kernel = kernels::attention_kernels().of<T>();
    Scratch<T> scratch(kernels::attention_scratch(tasks.length, tasks.depth));
    tasks.for_each([&](const Task& task) {
      const std::int64_t at = task.offset;
      const kernels::AttentionCotangents<T> out{
          result.y.data<T>() + at,           dy.data<T>() + at, result.logsumexp.data<T>() + task.head * tasks.length,
          pdq + task.chunk * q.numel() + at, pdk + at,          pdv + at};
      scratch.lend([&](T* buffer) { kernel.vjp(tasks.head_at<T>(at, q, k, v), task.first, task.last, out, buffer); });
    });
  });
  return {tasks.chunks == 1 ? dqs.select(0, 0) : reduce_sum(dqs, {0}), dk, dv};
}

}  // namespace

Var causal_attention(const Var& q, const Var& k, const Var& v) {
  check_shape(q.rank() == 4, "causal_attention: q must have shape [B, T, H, D] but has {}", q.shape());
  check_shape(k.shape() == q.shape(), "causal_attention: k must have shape {} to match q but has {}", q.shape(),
              k.shape());
  check_shape(v.shape() == q.shape(), "causal_attention: v must have shape {} to match q but has {}", q.shape(),
              v.shape());
  check_same_dtype("causal_attention", q.value(), k.value());
  check_same_dtype("causal_attention", q.value(), v.value());
  const Tensor queries = q.value().contiguous(), keys = k.value().contiguous(), values = v.value().contiguous();
  const Attended result = forward(queries, keys, values);
  return record("causal_attention", result.y, {q, k, v}, [queries, keys, values, result](const Tensor& dy) {
    return backward(dy.contiguous(), queries, keys, values, result);
  });
}

}  // namespace braid

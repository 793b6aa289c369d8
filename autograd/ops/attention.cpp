#include <braid/autograd/ops/attention.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <braid/autograd/ops/abs.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/detail/attention.h>
#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/dropout.h>
#include <braid/autograd/ops/einsum.h>
#include <braid/autograd/ops/softmax.h>
#include <braid/autograd/ops/tanh.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/core/kernels/scratch.h>

namespace braid {
namespace {

using detail::Attended, detail::AttentionInputs;
using kernels::kAttentionBlock, kernels::Scratch;

/// One piece of work: a range of blocks, of queries or of keys, of one head of keys.
struct Task {
  std::int64_t batch, head, chunk;
  std::int64_t first, last;      // blocks
  std::int64_t query, key, row;  // where its rows begin in tensors like q, like k, and of one number a row
};

/// How the work is cut, by the shapes alone: by heads of keys, and where there are fewer than 16 also along `length`.
struct Tasks {
  const AttentionInputs& in;
  std::int64_t heads, blocks, chunks;

  Tasks(const AttentionInputs& in, std::int64_t length)
      : in(in),
        heads(in.key_heads()),
        blocks((length + kAttentionBlock - 1) / kAttentionBlock),
        chunks(std::clamp<std::int64_t>(16 / std::max<std::int64_t>(in.batch() * heads, 1), 1,
                                        std::max<std::int64_t>(blocks, 1))) {}

  void for_each(auto f) const {
    parallel_for(in.batch() * heads * chunks, 1,
                 [&](std::int64_t index, std::int64_t) { f(of_chunk(index % chunks, index / chunks)); });
  }

  /// `index` counts the heads of all batches.
  Task of_chunk(std::int64_t chunk, std::int64_t index = 0) const {
    const std::int64_t batch = index / heads, head = index % heads;
    return {.batch = batch,
            .head = head,
            .chunk = chunk,
            .first = chunk * blocks / chunks,
            .last = (chunk + 1) * blocks / chunks,
            .query = (batch * in.visible.queries * heads + head) * in.visible.group * in.depth(),
            .key = (batch * in.visible.keys * heads + head) * in.depth(),
            .row = index * in.visible.rows()};
  }
};

template <class T>
kernels::AttentionHeads<T> heads_of(const AttentionInputs& in, const Task& task) {
  const auto at = [](const Tensor& x, std::int64_t i) { return x.defined() ? x.data<Compute<T>>() + i : nullptr; };
  const std::int64_t head = task.head * in.visible.group;
  const Strides& strides = in.mask.strides();
  return {.visible = in.visible,
          .depth = in.depth(),
          .query_stride = in.q.size(2) * in.depth(),
          .key_stride = in.key_heads() * in.depth(),
          .q = in.q.data<T>() + task.query,
          .k = in.k.data<T>() + task.key,
          .v = in.v.data<T>() + task.key,
          .scale = static_cast<Compute<T>>(in.scale),
          .softcap = static_cast<Compute<T>>(in.softcap),
          .sinks = at(in.sinks, head),
          .alibi = at(in.alibi, head),
          .mask = at(in.mask, task.batch * strides[0] + head * strides[1]),
          .mask_head_stride = strides[1],
          .mask_query_stride = strides[2],
          .dropout = in.dropout,
          .rng = in.rng,
          .multiply_tiles = in.multiply_tiles,
          .first_draw = task.row * in.visible.keys};
}

template <class T>
kernels::AttentionKernels<T> kernels_of(const AttentionInputs& in) {
  if constexpr (std::is_same_v<T, bfloat16>)
    if (in.multiply_tiles != nullptr) return kernels::attention_kernels().tiles;
  return kernels::attention_kernels().of<T>();
}

Attended forward(const AttentionInputs& in) {
  const DType dtype = in.q.dtype();
  if (in.k.numel() == 0 || in.q.numel() == 0) return {zeros(in.q.shape(), dtype), Tensor()};
  const Tasks tasks(in, in.visible.rows());
  Tensor y(in.q.shape(), dtype), logsumexp({in.batch(), tasks.heads, in.visible.rows()}, compute_dtype(dtype));
  dispatch_float_or_bf16("attention", dtype, [&]<class T>(T) {
    T* py = y.mutable_data<T>();
    auto* lse = logsumexp.mutable_data<Compute<T>>();
    const auto kernel = kernels_of<T>(in);
    std::int64_t elements = 0;
    for (std::int64_t chunk = 0; chunk < tasks.chunks; ++chunk) {
      const Task task = tasks.of_chunk(chunk);
      elements = std::max(elements, kernel.forward_scratch(heads_of<T>(in, task), task.first, task.last));
    }
    Scratch<Compute<T>> scratch(elements);
    tasks.for_each([&](const Task& task) {
      scratch.lend([&](Compute<T>* buffer) {
        kernel.forward(heads_of<T>(in, task), task.first, task.last, py + task.query, lse + task.row, buffer);
      });
    });
  });
  return {y, logsumexp};
}

/// 1 where a query sees a key, else 0. [B, H, T_q, T_k], broadcast
Tensor seen(const AttentionInputs& in, const Shape& scores) {
  const auto& [queries, keys, group, causal, window] = in.visible;
  Tensor sees = zeros({queries, keys}, DType::i32);
  for (std::int64_t t = 0; t < queries; ++t) {
    const auto [begin, end] = in.visible.of_row(t * group);
    std::fill_n(sees.mutable_data<std::int32_t>() + t * keys + begin, end - begin, 1);
  }
  if (!in.mask.defined()) return sees.broadcast_to(scores);
  auto shown = [](auto sees, auto mask) { return mask == -std::numeric_limits<decltype(mask)>::infinity() ? 0 : sees; };
  return map("attention", shown, sees.to(in.mask.dtype()), in.mask);
}

/// Of each key from each query's own position. [T_q, T_k]
Var distances(const AttentionInputs& in) {
  const DType dtype = in.alibi.dtype();
  const Var own = arange(in.visible.queries, dtype) + static_cast<double>(in.visible.keys - in.visible.queries);
  return abs(reshape(own, {-1, 1}) - arange(in.visible.keys, dtype));
}

/// -sum(p * sum(dy * y)) with the probabilities p of the sinks.
Tensor sinks_vjp(const Tensor& dy, const AttentionInputs& in, const Attended& result) {
  if (!result.logsumexp.defined()) return zeros(in.sinks.shape(), in.sinks.dtype());
  const std::int64_t key_heads = in.key_heads(), group = in.visible.group;
  const Var delta = sum(detail::widened(dy) * detail::widened(result.y), {3});
  const Var by_head = transpose(reshape(delta, {in.batch(), in.visible.queries, key_heads, group}), 1, 2);
  const Var p = exp(reshape(in.sinks, {key_heads, 1, group}) - reshape(result.logsumexp, by_head.shape()));
  return reshape(sum(-p * by_head, {0, 2}), in.sinks.shape()).value();
}

/// The mask as what is added to the scores, [B, H, T_q, T_k], broadcast but along its last axis.
Tensor additive(const Tensor& mask, const Shape& scores, DType dtype) {
  if (!mask.defined()) return mask;
  const DType computed = compute_dtype(dtype);
  check_dtype(mask.dtype() == DType::i32 || mask.dtype() == dtype || mask.dtype() == computed,
              "attention: mask must have dtype i32 or {}, that of q, but has {}", name(dtype), name(mask.dtype()));
  bool fits = mask.rank() <= 4;
  for (int axis = -1; fits && axis >= -mask.rank(); --axis)
    fits = mask.size(axis) == 1 || mask.size(axis) == scores[axis];
  check_shape(fits, "attention: mask must broadcast to {} but has shape {}", scores, mask.shape());
  const Shape whole = mask.rank() == 0 ? Shape{scores[3]} : mask.shape().with(-1, scores[3]);
  const Tensor rows = mask.broadcast_to(whole).contiguous().to(computed);
  auto hide = []<class T>(T seen) { return seen == 0 ? -std::numeric_limits<T>::infinity() : T{0}; };
  return (mask.dtype() == DType::i32 ? map("attention", hide, rows) : rows).broadcast_to(scores);
}

void check_inputs(const Var& q, const Var& k, const Var& v, const AttentionOptions& options) {
  check_shape(q.rank() == 4, "attention: q must have shape [B, T_q, H, D] but has {}", q.shape());
  check_shape(k.rank() == 4 && k.size(0) == q.size(0) && k.size(3) == q.size(3),
              "attention: k must have shape [{}, T_k, H_kv, {}] to match q {} but has {}", q.size(0), q.size(3),
              q.shape(), k.shape());
  check_shape(k.size(2) == q.size(2) || (k.size(2) > 0 && q.size(2) % k.size(2) == 0),
              "attention: the {} heads of k {} must divide the {} of q {}", k.size(2), k.shape(), q.size(2), q.shape());
  check_shape(v.shape() == k.shape(), "attention: v must have shape {} to match k but has {}", k.shape(), v.shape());
  for (const Var* x : {&k, &v}) check_same_dtype("attention", q.value(), x->value());
  check_floating("attention", q.dtype());
  check_value(options.window >= 0, "attention: window must not be negative but is {}", options.window);
  check_value(options.window == 0 || options.causal, "attention: window {} needs causal; write another as a mask",
              options.window);
  check_value(std::isfinite(options.scale), "attention: scale must be finite but is {}", options.scale);
  check_value(0 <= options.softcap && std::isfinite(options.softcap),
              "attention: softcap must be finite and not negative but is {}", options.softcap);
  check_value(0 <= options.dropout && options.dropout < 1, "attention: dropout must lie in [0, 1) but is {}",
              options.dropout);
  check_value(options.dropout == 0 || options.rng != nullptr, "attention: dropout {} needs rng", options.dropout);
  for (const auto& [what, x] : {std::pair("sinks", &options.sinks.value()), std::pair("alibi", &options.alibi)}) {
    if (!x->defined()) continue;
    check_shape(x->shape() == Shape{q.size(2)}, "attention: {} must have shape [{}], one per head, but have {}", what,
                q.size(2), x->shape());
    check_dtype(x->dtype() == q.dtype() || x->dtype() == compute_dtype(q.dtype()),
                "attention: {} must have dtype {}, that of q, but have {}", what, name(q.dtype()), name(x->dtype()));
  }
}

}  // namespace

/// dv = p^T dy, ds = p * (dy v^T - sum(dy * y)), dq = scale ds k, dk = scale ds^T q with the probabilities p.
/// A task has all of dk and dv of its keys; its share of dq is added to the others' in order.
std::vector<Tensor> detail::attention_vjp(const Tensor& dy, const AttentionInputs& in, const Attended& result) {
  const Shape &queries = in.q.shape(), &keys = in.k.shape();
  const DType dtype = in.q.dtype();
  if (in.k.numel() == 0 || in.q.numel() == 0) return {zeros(queries, dtype), zeros(keys, dtype), zeros(keys, dtype)};
  const Tasks tasks(in, in.visible.keys);
  Tensor dk(keys, dtype), dv(keys, dtype), dqs(queries.inserted(0, tasks.chunks), compute_dtype(dtype));
  dispatch_float_or_bf16("attention", dtype, [&]<class T>(T) {
    auto* pdq = dqs.mutable_data<Compute<T>>();
    T *pdk = dk.mutable_data<T>(), *pdv = dv.mutable_data<T>();
    const auto kernel = kernels_of<T>(in);
    Scratch<Compute<T>> scratch(kernel.vjp_scratch(heads_of<T>(in, tasks.of_chunk(0))));
    tasks.for_each([&](const Task& task) {
      const kernels::AttentionCotangents<T> out{.y = result.y.data<T>() + task.query,
                                                .dy = dy.data<T>() + task.query,
                                                .logsumexp = result.logsumexp.data<Compute<T>>() + task.row,
                                                .dq = pdq + task.chunk * in.q.numel() + task.query,
                                                .dk = pdk + task.key,
                                                .dv = pdv + task.key};
      scratch.lend([&](Compute<T>* buffer) { kernel.vjp(heads_of<T>(in, task), task.first, task.last, out, buffer); });
    });
  });
  return {(tasks.chunks == 1 ? dqs.select(0, 0) : reduce_sum(dqs, {0})).to(dtype), dk, dv};
}

/// Hidden scores are far below all others, and hidden weights 0, so that a query that sees no key gives zeros.
Var detail::composed_attention(const Var& q, const Var& k, const Var& v, const Var& sinks, const AttentionInputs& in) {
  const std::int64_t batch = in.batch(), key_heads = in.key_heads(), group = in.visible.group;
  const Shape shape{batch, key_heads * group, in.visible.queries, in.visible.keys};
  const Var grouped = reshape(detail::widened(q), {batch, in.visible.queries, key_heads, group, in.depth()});
  Var scores = in.scale * reshape(einsum("btkgd,bskd->bkgts", grouped, detail::widened(k)), shape);
  if (in.softcap != 0) scores = in.softcap * tanh((1 / in.softcap) * scores);
  if (in.alibi.defined()) scores = scores - distances(in) * Var(in.alibi.reshape({key_heads * group, 1, 1}));
  if (in.mask.defined()) scores = scores + in.mask;
  const Tensor sees = seen(in, shape);
  scores = where(sees, scores, -0x1p126);
  if (in.sinks.defined())
    scores = concat(
        {scores, broadcast_to(reshape(detail::widened(sinks), {key_heads * group, 1, 1}), shape.with(-1, 1))}, -1);
  Var weights = where(sees, slice(softmax(scores), -1, 0, in.visible.keys), 0.0);
  if (in.dropout > 0) weights = detail::drop(weights, in.dropout, in.rng);
  weights = reshape(weights, {batch, key_heads, group, in.visible.queries, in.visible.keys});
  return cast(reshape(einsum("bkgts,bskd->btkgd", weights, detail::widened(v)), q.shape()), q.dtype());
}

Var attention(const Var& q, const Var& k, const Var& v, const AttentionOptions& options) {
  check_inputs(q, k, v, options);
  const std::int64_t heads = q.size(2), length = q.size(1), keys = k.size(1);
  const double depth = static_cast<double>(q.size(3));
  const auto computed = [&](const Tensor& x) { return x.defined() ? x.to(compute_dtype(q.dtype())).contiguous() : x; };
  const AttentionInputs in{
      .q = q.value().contiguous(),
      .k = k.value().contiguous(),
      .v = v.value().contiguous(),
      .mask = additive(options.mask, {q.size(0), heads, length, keys}, q.dtype()),
      .sinks = computed(options.sinks.value()),
      .alibi = computed(options.alibi),
      .visible = {length, keys, heads == 0 ? 1 : heads / k.size(2), options.causal, std::min(options.window, keys)},
      .scale = options.scale == 0 ? 1 / std::sqrt(depth) : options.scale,
      .softcap = options.softcap,
      .dropout = options.dropout,
      .rng = options.dropout == 0 ? Rng() : options.rng->split(),
      .multiply_tiles = q.size(3) >= 32 ? kernels::amx::fast_multiply() : nullptr};  // less fills half a tile
  const Var& sinks = options.sinks;
  const bool has_rule = options.dropout == 0 && options.softcap == 0 && !in.sinks.defined() && !in.alibi.defined() &&
                        q.dtype() != DType::bf16;
  if (Composed::active(has_rule ? Composed::Ops::with_rule : Composed::Ops::all))
    return detail::composed_attention(q, k, v, sinks, in);
  const Attended result = forward(in);
  if (in.sinks.defined())
    return record("attention", result.y, {q, k, v, sinks}, [in, result, dtype = sinks.dtype()](const Tensor& dy) {
      std::vector<Tensor> cotangents = detail::attention_vjp(dy.contiguous(), in, result);
      cotangents.push_back(sinks_vjp(dy, in, result).to(dtype));
      return cotangents;
    });
  return record(
      "attention", result.y, {q, k, v},
      [in, result](const Tensor& dy) { return detail::attention_vjp(dy.contiguous(), in, result); },
      [in, result](const Applied& op) { return detail::record_attention_vjp(op, in, result); });
}

}  // namespace braid

#include <algorithm>
#include <limits>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/kernels/elementwise.h>
#include <braid/autograd/ops/detail/attention.h>
#include <braid/core/parallel.h>
#include <braid/core/products/matmul.h>

namespace braid::detail {
namespace {

constexpr std::int64_t kScores = 32768;  // computed at a time, so that all that is made of them stays in cache

/// The queries of a head of keys, [B, T, H_kv * group, D], as rows of a matrix: [B * H_kv, T * group, D].
Tensor by_heads(const Tensor& x, std::int64_t heads) {
  const std::int64_t group = x.size(2) / heads;
  const Tensor split = x.reshape({x.size(0), x.size(1), heads, group, x.size(3)}).permute({0, 2, 1, 3, 4});
  return split.contiguous().reshape({x.size(0) * heads, x.size(1) * group, x.size(3)});
}

Tensor from_heads(const Tensor& y, const Shape& shape, std::int64_t heads) {
  return y.reshape({shape[0], heads, shape[1], shape[2] / heads, shape[3]}).permute({0, 2, 1, 3, 4}).reshape(shape);
}

/// The cotangents of q, k, v and dy for those of the vjp's results, dq, dk and dv.
///
/// With the probabilities p, g = dy v^T, r = sum(p g) and ds = p (g - r), the vjp is dq = scale ds k, dk = scale ds^T q
/// and dv = p^T dy. Its results' cotangents a, b and c make those of ds, e = scale (a k^T + q b^T), of g, p (e - m)
/// with m = sum(p e), and of p, h = e (g - r) - m g + dy c^T; the one of the scores is p (h - sum(p h)).
template <class T>
class SecondVjp {
 public:
  SecondVjp(const AttentionInputs& in, const Attended& result, const Tensor& dy, std::span<const Tensor> cotangents)
      : in_(in), logsumexp_(result.logsumexp.data<T>()), scale_(static_cast<T>(in.scale)) {
    const Tensor like[] = {in.q, in.k, in.v, dy, cotangents[0], cotangents[1], cotangents[2]};
    Tensor* const all[] = {&q_, &k_, &v_, &dy_, &a_, &b_, &c_};
    for (std::size_t i = 0; i < 7; ++i)
      *all[i] = by_heads(like[i].defined() ? like[i] : zeros(like[i - 4].shape(), in.q.dtype()), in.key_heads());
    for (Tensor* out : {&dq_, &ddy_}) *out = Tensor(q_.shape(), q_.dtype());
    for (Tensor* out : {&dk_, &dv_}) *out = zeros(k_.shape(), k_.dtype());
  }

  std::vector<Tensor> run() {
    const std::int64_t keys = in_.visible.keys, queries = in_.visible.queries, group = in_.visible.group;
    const std::int64_t positions = std::clamp<std::int64_t>(kScores / (keys * group), 1, queries);
    parallel_for(q_.size(0), 1, [&](std::int64_t head, std::int64_t) {
      for (std::int64_t begin = 0; begin < queries; begin += positions)
        of_rows(head, {begin * group, std::min(begin + positions, queries) * group});
    });
    const std::int64_t heads = in_.key_heads();
    return {from_heads(dq_, in_.q.shape(), heads), from_heads(dk_, in_.k.shape(), heads),
            from_heads(dv_, in_.v.shape(), heads), from_heads(ddy_, in_.q.shape(), heads)};
  }

 private:
  void of_rows(std::int64_t head, kernels::Span rows) {
    const kernels::Span seen = in_.visible.of_rows(rows);
    const auto queries = [&](const Tensor& x) { return x.select(0, head).slice(0, rows.begin, rows.end); };
    const auto keys = [&](const Tensor& x) { return x.select(0, head).slice(0, seen.begin, seen.end); };
    const Tensor q = queries(q_), dy = queries(dy_), a = queries(a_);
    const Tensor k = keys(k_), v = keys(v_), b = keys(b_), c = keys(c_);
    Tensor p = matrix_product(q, k.transpose()), ds = matrix_product(dy, v.transpose());
    Tensor dg = matrix_product(a, k.transpose()), dscores = matrix_product(dy, c.transpose());
    accumulate_product(q, b.transpose(), dg);
    to_probabilities(p.mutable_data<T>(), head, rows, seen);
    for (std::int64_t row = 0, n = seen.end - seen.begin; row < p.size(0); ++row)
      of_scores(n, p.data<T>() + row * n, ds.mutable_data<T>() + row * n, dg.mutable_data<T>() + row * n,
                dscores.mutable_data<T>() + row * n);
    const std::int64_t row = head * in_.visible.rows() + rows.begin, key = head * in_.visible.keys + seen.begin;
    add(scale_, sum_of_products(ds, b, dscores, k), dq_, row, /*first=*/true);
    add(scale_, sum_of_products(ds.transpose(), a, dscores.transpose(), q), dk_, key);
    add(1, matrix_product(dg.transpose(), dy), dv_, key);
    add(1, sum_of_products(p, c, dg, v), ddy_, row, /*first=*/true);
  }

  /// p holds q k^T.
  void to_probabilities(T* p, std::int64_t head, kernels::Span rows, kernels::Span seen) const {
    constexpr T kHidden = -std::numeric_limits<T>::infinity();
    T* score = p;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const T logsumexp = logsumexp_[head * in_.visible.rows() + row], *mask = mask_of(head, row);
      const auto [begin, end] = logsumexp == kHidden ? kernels::Span{0, 0} : in_.visible.of_row(row);
      for (std::int64_t key = seen.begin; key < seen.end; ++key, ++score)
        *score = key < begin || key >= end ? kHidden : scale_ * *score + (mask ? mask[key] : 0) - logsumexp;
    }
    kernels::elementwise_kernels().of<T>().exp(p, p, score - p);
  }

  const T* mask_of(std::int64_t head, std::int64_t row) const {
    if (!in_.mask.defined()) return nullptr;
    const std::int64_t query_head = head % in_.key_heads() * in_.visible.group + in_.visible.head(row);
    const Strides& strides = in_.mask.strides();
    return in_.mask.data<T>() + head / in_.key_heads() * strides[0] + query_head * strides[1] +
           in_.visible.position(row) * strides[2];
  }

  /// A row of p; of g, which becomes ds; of e / scale, which becomes dg; of dy c^T, which becomes dscores.
  void of_scores(std::int64_t n, const T* p, T* g, T* e, T* h) const {
    T r = 0, m = 0, mean = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      e[j] *= scale_;
      r += p[j] * g[j];
      m += p[j] * e[j];
    }
    for (std::int64_t j = 0; j < n; ++j) {
      h[j] += e[j] * (g[j] - r) - m * g[j];
      mean += p[j] * h[j];
      g[j] = p[j] * (g[j] - r);
      e[j] = p[j] * (e[j] - m);
    }
    for (std::int64_t j = 0; j < n; ++j) h[j] = p[j] * (h[j] - mean);
  }

  static Tensor sum_of_products(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    Tensor sum = matrix_product(a, b);
    accumulate_product(c, d, sum);
    return sum;
  }

  /// To the rows of `sums` from `row` on, or in place of them.
  static void add(T factor, const Tensor& x, Tensor& sums, std::int64_t row, bool first = false) {
    const T* from = x.data<T>();
    T* sum = sums.mutable_data<T>() + row * x.size(1);
    for (std::int64_t i = 0; i < x.numel(); ++i) sum[i] = factor * from[i] + (first ? 0 : sum[i]);
  }

  const AttentionInputs& in_;
  const T* logsumexp_;
  const T scale_;
  Tensor q_, dy_, a_, dq_, ddy_;    // [B * H_kv, T_q * group, D]
  Tensor k_, v_, b_, c_, dk_, dv_;  // [B * H_kv, T_k, D]
};

std::vector<Tensor> second_vjp(const AttentionInputs& in, const Attended& result, const Tensor& dy,
                               std::span<const Tensor> cotangents) {
  if (in.k.numel() == 0 || in.q.numel() == 0)
    return {zeros(in.q.shape(), in.q.dtype()), zeros(in.k.shape(), in.k.dtype()), zeros(in.v.shape(), in.v.dtype()),
            zeros(in.q.shape(), in.q.dtype())};
  return dispatch_float("attention_vjp", in.q.dtype(),
                        [&](auto zero) { return SecondVjp<decltype(zero)>(in, result, dy, cotangents).run(); });
}

}  // namespace

std::vector<Var> record_attention_vjp(const Applied& attention, const AttentionInputs& in, const Attended& result) {
  const auto compose = [in](std::span<const Var> x) { return composed_attention(x[0], x[1], x[2], {}, in); };
  check<Error>(in.dropout == 0 && in.softcap == 0 && !in.alibi.defined(),
               "attention: with dropout, a softcap or alibi, only its composed form has derivatives of higher order");
  const Tensor dy = attention.dy().value().contiguous();
  const auto vjp = [in, result, dy](std::span<const Tensor> dys, const Needs&) {
    return second_vjp(in, result, dy, dys);
  };
  const std::vector<Var> inputs{attention.x(0), attention.x(1), attention.x(2), attention.dy()};
  return record("attention_vjp", attention_vjp(dy, in, result), inputs, vjp, {}, rule_of_vjp("attention_vjp", compose));
}

}  // namespace braid::detail

// The fused ops, forward and vjp, as shares of the machine's limits: copy bandwidth for memory-bound ops, the
// multiply-add peak for attention. Each that has a composed form is compared with it first.
#include <algorithm>
#include <cmath>

#include <bench/benchmark_main.h>
#include <bench/op_bench.h>
#include <braid/autograd/ops.h>
#include <braid/core/random.h>
#include <braid/nn/experts.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

Var composed_rms_norm(Vars x) { return x[0] * rsqrt(mean(x[0] * x[0], {-1}, true) + 1e-5) * x[1]; }

Var composed_layer_norm(Vars x) {
  const Var centred = x[0] - mean(x[0], {-1}, true);
  return centred * rsqrt(mean(centred * centred, {-1}, true) + 1e-5) * x[1] + x[2];
}

Var composed_softmax(Vars x) {
  const Var e = exp(x[0] - max(x[0], {-1}, true));
  return e / sum(e, {-1}, true);
}

/// Attention of T_q queries, the last of T_k positions.
struct AttentionSizes {
  const char* name;
  std::int64_t batch, queries, keys, heads, key_heads, depth;
  AttentionOptions options = {};

  Shape q() const { return {batch, queries, heads, depth}; }
  Shape k() const { return {batch, keys, key_heads, depth}; }

  /// Calls f(t, begin, end) for each query t, which sees the keys [begin, end).
  void for_each_query(auto f) const {
    for (std::int64_t t = 0; t < queries; ++t) {
      const std::int64_t end = options.causal ? t + 1 + keys - queries : keys;
      f(t, options.window > 0 ? std::max<std::int64_t>(0, end - options.window) : 0, end);
    }
  }

  /// 1 where a query sees the key, 0 elsewhere. [T_q, T_k]
  Tensor seen() const {
    Tensor mask = zeros({queries, keys}, DType::i32);
    for_each_query([&](std::int64_t t, std::int64_t begin, std::int64_t end) {
      std::fill_n(mask.mutable_data<std::int32_t>() + t * keys + begin, end - begin, 1);
    });
    return mask;
  }
};

Var composed_attention(Vars x, const AttentionSizes& n, const Tensor& seen) {
  const std::int64_t group = n.heads / n.key_heads;
  const Var q = reshape(x[0], {n.batch, n.queries, n.key_heads, group, n.depth});
  const Var scores = einsum("btkgd,bskd->bkgts", q, x[1]) / std::sqrt(static_cast<double>(n.depth));
  const Var weights = softmax(where(seen, scores, full(Shape{}, -1e30, q.dtype())));
  return reshape(einsum("bkgts,bskd->btkgd", weights, x[2]), n.q());
}

/// Ops on rows [rows, width] of f32: the forward pass reads x and writes y, the vjp reads dy and x and writes dx.
std::vector<OpBench> row_benches(std::int64_t rows, std::int64_t width) {
  const Shape x{rows, width}, parameter{width};
  const double bytes = 4.0 * static_cast<double>(rows * width);
  Rng rng(5);
  const Tensor targets = randint(0, width, {rows}, rng);
  const auto fused_loss = [targets](Vars v) { return cross_entropy(v[0], targets); };
  const auto composed_loss = [targets](Vars v) { return -mean(gather(log_softmax(v[0]), 1, targets.expand_dims(1))); };
  const Work two{2 * bytes}, three{3 * bytes};
  return {
      {"rms_norm", {x, parameter}, [](Vars v) { return rms_norm(v[0], v[1]); }, composed_rms_norm, two, three},
      {"layer_norm",
       {x, parameter, parameter},
       [](Vars v) { return layer_norm(v[0], v[1], v[2]); },
       composed_layer_norm,
       two,
       three},
      {"softmax", {x}, [](Vars v) { return softmax(v[0]); }, composed_softmax, two, three},
      {"cross_entropy", {x}, fused_loss, composed_loss, {bytes}, two},
  };
}

/// Two products of the scores that are seen in the forward pass, five in the vjp. A single query reads its keys and
/// values. Contexts whose scores take more than 128 MB are not composed.
OpBench attention_bench(const AttentionSizes& n, DType dtype) {
  std::int64_t pairs = 0;
  n.for_each_query([&](std::int64_t, std::int64_t begin, std::int64_t end) { pairs += end - begin; });
  const double product = 2.0 * static_cast<double>(pairs * n.batch * n.heads * n.depth);
  const double keys = 2.0 * static_cast<double>(n.k().numel()) * static_cast<double>(size_of(dtype));
  const bool reads = n.queries == 1, composes = n.heads * n.queries * n.keys <= 32 << 20;
  const auto composed = [n, seen = composes ? n.seen() : Tensor()](Vars v) { return composed_attention(v, n, seen); };
  return {fmt::format("{}{}", n.name, dtype == DType::bf16 ? "_bf16" : ""),
          {n.q(), n.k(), n.k()},
          [n](Vars v) { return attention(v[0], v[1], v[2], n.options); },
          composes ? Function(composed) : Function(),
          {reads ? keys : 0, reads ? 0 : 2 * product},
          {reads ? 2 * keys : 0, reads ? 0 : 5 * product},
          {},
          dtype};
}

/// Taps of 3 x 3 over pictures with as many channels before and behind: one product forward and two in the vjp.
OpBench conv2d_bench(std::int64_t batch, std::int64_t size, std::int64_t channels) {
  const auto composed = [channels](Vars v) {
    const Var taps = reshape(permute(v[1], {2, 3, 1, 0}), {9 * channels, channels});
    return matmul(unfold(v[0], 3, {.padding = 1}), taps) + v[2];
  };
  const double product = 2.0 * static_cast<double>(batch * size * size * 9 * channels * channels);
  return {"conv2d",
          {{batch, size, size, channels}, {channels, channels, 3, 3}, {channels}},
          [](Vars v) { return conv2d(v[0], v[1], v[2], {.padding = 1}); },
          composed,
          {0, product},
          {0, 2 * product}};
}

/// A module whose parameters are the inputs behind the first.
template <Module M>
M with_params(M module, Vars v) {
  std::size_t next = 1;
  for_each_param(module, [&](const std::string&, Var& parameter) { parameter = v[next++]; });
  return module;
}

template <Module M>
OpBench module_bench(const char* name, const Shape& x, const M& module, const auto& composed, const Work& forward) {
  std::vector<Shape> shapes{x};
  for_each_param(module, [&](const std::string&, const Var& parameter) { shapes.push_back(parameter.shape()); });
  const auto scaled = [](const Var& v) { return 0.05 * v; };  // weights of standard deviation 1 make outputs large
  return {name,
          shapes,
          [=](Vars v) { return with_params(module, v)(scaled(v[0])); },
          [=](Vars v) { return composed(with_params(module, v), scaled(v[0])); },
          forward,
          {0, 2 * forward.flops}};
}

/// Experts of which each token passes `top`, composed as the sum of all, and the MLP of as many operations.
std::vector<OpBench> experts_benches(std::int64_t tokens, std::int64_t channels, int count, int top) {
  Rng rng(5);
  const Shape x{tokens, channels};
  const std::int64_t hidden = 4 * channels;
  const Work products{0, 4.0 * static_cast<double>(tokens * channels * hidden)};
  const nn::Experts experts(channels, hidden / top, rng, {.experts = count, .top = top, .mlp = {.bias = false}});
  const auto all_experts = [](const nn::Experts& e, const Var& x) {
    const nn::Route route = e.route(x);
    const Var shares = sum(one_hot(route.experts, e.settings.experts) * expand_dims(route.weights, -1), {1});
    Var y = zeros(x.shape());
    for (int i = 0; i < e.settings.experts; ++i) y = y + slice(shares, 1, i, i + 1) * e.experts[i](x);
    return y;
  };
  const auto by_products = [](const nn::MLP& mlp, const Var& x) {
    const Var inside = gelu(matmul(x, transpose(mlp.up.weight, 0, 1)));
    return matmul(inside, transpose(mlp.down.weight, 0, 1));
  };
  return {module_bench("experts", x, experts, all_experts, products),
          module_bench("mlp", x, nn::MLP(channels, hidden, rng, {.bias = false}), by_products, products)};
}

void add_op_benchmarks() {
  for (const auto& [rows, width] : {std::pair{2048, 384}, {16384, 1024}})
    for (OpBench& op : row_benches(rows, width)) add_benchmarks(std::move(op));
  for (const AttentionSizes& sizes : std::initializer_list<AttentionSizes>{
           {"attention", 12, 64, 64, 4, 4, 32},
           {"attention", 8, 256, 256, 6, 6, 64},
           {"attention_full", 8, 256, 256, 6, 6, 64, {.causal = false}},
           {"attention_window", 8, 256, 256, 6, 6, 64, {.window = 64}},
           {"attention_grouped", 8, 256, 256, 6, 2, 64},
           {"attention_long", 1, 1024, 1024, 6, 6, 64},
           {"attention_long", 1, 2048, 2048, 6, 6, 64},
           {"attention_long", 1, 4096, 4096, 6, 6, 64},
           {"attention_long", 1, 8192, 8192, 6, 6, 64},
           {"attention_decode", 1, 1, 4096, 12, 4, 64},
       })
    for (const DType dtype : {DType::f32, DType::bf16}) add_benchmarks(attention_bench(sizes, dtype));
  add_benchmarks(conv2d_bench(8, 56, 64));
  add_benchmarks(conv2d_bench(8, 28, 128));
  for (OpBench& op : experts_benches(2048, 384, 8, 2)) add_benchmarks(std::move(op));
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  return braid::bench::benchmark_main("bench_ops", argc, argv, braid::bench::add_op_benchmarks);
}

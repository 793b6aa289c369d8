// The fused ops, forward and vjp, as shares of what the machine gives: copy bandwidth for those that move memory, the
// multiply-add peak for attention. Each stands beside its composition of plain ops, which it is first compared with.
#include <algorithm>
#include <cmath>

#include <bench/benchmark_main.h>
#include <bench/op_bench.h>
#include <braid/autograd/ops.h>
#include <braid/core/random.h>

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

/// 1 where a query may look, 0 for the keys behind it. [T, T]
Tensor causal_mask(std::int64_t length) {
  Tensor mask = zeros({length, length}, DType::i32);
  for (std::int64_t t = 0; t < length; ++t) std::fill_n(mask.mutable_data<std::int32_t>() + t * length, t + 1, 1);
  return mask;
}

Var composed_attention(Vars x) {
  const std::int64_t length = x[0].size(1), depth = x[0].size(3);
  const auto heads_first = [](const Var& v) { return permute(v, {0, 2, 1, 3}); };
  const Var scores = matmul(heads_first(x[0]), transpose(heads_first(x[1]))) / std::sqrt(static_cast<double>(depth));
  const Var seen = where(causal_mask(length), scores, Var(full(Shape{}, -1e30)));
  return heads_first(matmul(softmax(seen), heads_first(x[2])));
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

/// Two products of the triangle of T (T + 1) / 2 scores in the forward pass, five in the vjp.
OpBench attention_bench(const Shape& shape) {
  const auto length = static_cast<double>(shape[1]);
  const double product = static_cast<double>(shape[0] * shape[2] * shape[3]) * length * (length + 1);
  return {"attention",        {shape, shape, shape}, [](Vars v) { return attention(v[0], v[1], v[2]); },
          composed_attention, {0, 2 * product},      {0, 5 * product}};
}

void add_op_benchmarks() {
  for (const auto& [rows, width] : {std::pair{2048, 384}, {16384, 1024}})
    for (OpBench& op : row_benches(rows, width)) add_benchmarks(std::move(op));
  for (const Shape& shape : {Shape{12, 64, 4, 32}, Shape{8, 256, 6, 64}}) add_benchmarks(attention_bench(shape));
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  return braid::bench::benchmark_main("bench_ops", argc, argv, braid::bench::add_op_benchmarks);
}

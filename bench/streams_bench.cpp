// The stream ops of ManifoldHyperConnection and MHCSkip, forward and vjp, as shares of copy bandwidth. Each is first
// compared with its composed form. bench_mhc has the other connections. Bytes are the unavoidable ones: every tensor
// that is read or written, once.
#include <bench/benchmark_main.h>
#include <bench/op_bench.h>
#include <braid/autograd/composed.h>
#include <braid/autograd/ops.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/ops/group_mix.h>
#include <braid/mhc/ops/weighted_sum.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

Var composed_mix_groups(Vars v) { return matmul(v[0], v[2]) + expand_dims(v[1], -1) * v[3]; }

Var composed_weighted_sum(Vars v) {
  Var y = v[0];
  for (int k = 0; k < 4; ++k) y = y + slice(v[1], 0, k, k + 1) * v[static_cast<std::size_t>(2 + k)];
  return y;
}

Var attend_to_depth(Vars v) { return mhc::attention_residual(v[0], v[1], v.subspan(2)); }

/// n streams of C channels, f32. Sizes are counted in rows of C values per token.
std::vector<OpBench> stream_benches(std::int64_t tokens, std::int64_t n, std::int64_t channels) {
  const Shape x{tokens, n, channels}, state{tokens, channels};
  const auto rows = [=](std::int64_t count) { return Work{4.0 * static_cast<double>(tokens * channels * count)}; };
  return {
      {"mix_groups",
       {{n, n}, {n}, x, x},
       [](Vars v) { return mhc::mix_groups(v[0], v[1], v[2], v[3]); },
       composed_mix_groups,
       rows(3 * n),
       rows(5 * n)},
      {"weighted_sum",
       {state, {4}, state, state, state, state},
       [](Vars v) { return mhc::weighted_sum(v[0], v[1], v.subspan(2)); },
       composed_weighted_sum,
       rows(6),
       rows(9)},
      {"attention_residual",
       {{channels}, {channels}, state, state, state, state},
       attend_to_depth,
       [](Vars v) {
         const Composed scope(Composed::Ops::connections);
         return attend_to_depth(v);
       },
       rows(5),
       rows(9)},
  };
}

void add_stream_benchmarks() {
  for (const auto& [tokens, channels] : {std::pair{16384, 512}, {1, 512}, {2048, 128}})
    for (OpBench& op : stream_benches(tokens, 4, channels)) {
      op.sizes = fmt::format("{}x4x{}", tokens, channels);
      add_benchmarks(std::move(op));
    }
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  return braid::bench::benchmark_main("bench_streams", argc, argv, braid::bench::add_stream_benchmarks);
}

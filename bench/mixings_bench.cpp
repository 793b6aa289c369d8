// Every mixing, forward and vjp, on 4096 matrices and one thread, so that times are costs per matrix: the kernel and
// its composed form, after a comparison of the two. bench_sinkhorn and bench_mhc measure the ops around them.
#include <bench/benchmark_main.h>
#include <bench/op_bench.h>
#include <braid/autograd/composed.h>
#include <braid/core/parallel.h>
#include <braid/mhc/mixings/mixing.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

constexpr std::int64_t kMatrices = 4096;

void add_mixings() {
  set_num_threads(1);
  for (const std::int64_t n : {4, 2, 8})
    for (const std::string_view name : mhc::mixing_names(n)) {
      const mhc::Mixing mixing(name, n);
      add_benchmarks({.name = fmt::format("mixings/{}", name),
                      .shapes = {{kMatrices, mixing.logits()}},
                      .fused = [mixing](Vars v) { return mixing(v[0]); },
                      .composed =
                          [mixing](Vars v) {
                            const Composed scope(Composed::Ops::connections);
                            return mixing(v[0]);
                          },
                      .forward = {},
                      .vjp = {},
                      .sizes = fmt::format("{}x{}x{}", kMatrices, n, n)});
    }
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  return braid::bench::benchmark_main("bench_mixings", argc, argv, braid::bench::add_mixings);
}

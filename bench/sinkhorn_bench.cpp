// Sinkhorn-Knopp on a batch of small matrices, forward and vjp: the kernel, its composed form, and plain scalar loops
// compiled with the same flags. Each is first compared with the composed form.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <bench/benchmark_main.h>
#include <bench/statistics.h>
#include <braid/autograd/composed.h>
#include <braid/autograd/tape.h>
#include <braid/core/parallel.h>
#include <braid/core/random.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

constexpr int kIterations = 20;

/// y = v / s along every line of v [n, n], in place; entries of a line are `step` apart, lines `next`.
template <int kN>
void divide_by_sums(float* p, int next, int step, float* sums) {
  for (int i = 0; i < kN; ++i) {
    float sum = 0;
    for (int k = 0; k < kN; ++k) sum += p[i * next + k * step];
    for (int k = 0; k < kN; ++k) p[i * next + k * step] /= sum;
    sums[i] = sum;
  }
}

/// dv = (g - sum(g y)) / s, and y becomes v again.
template <int kN>
void undo_division(float* p, float* g, int next, int step, const float* sums) {
  for (int i = 0; i < kN; ++i) {
    float dot = 0;
    for (int k = 0; k < kN; ++k) dot += g[i * next + k * step] * p[i * next + k * step];
    for (int k = 0; k < kN; ++k) {
      g[i * next + k * step] = (g[i * next + k * step] - dot) / sums[i];
      p[i * next + k * step] *= sums[i];
    }
  }
}

/// A plain implementation without SIMD: rows first, columns last, p = exp(logits - the row's maximum) and divisions.
template <int kN>
void scalar_forward(const float* logits, float* p, float* sums) {
  for (int i = 0; i < kN; ++i) {
    const float top = *std::max_element(logits + i * kN, logits + (i + 1) * kN);
    for (int j = 0; j < kN; ++j) p[i * kN + j] = std::exp(logits[i * kN + j] - top);
  }
  for (int k = 0; k < kIterations; ++k, sums += 2 * kN) {
    divide_by_sums<kN>(p, kN, 1, sums);
    divide_by_sums<kN>(p, 1, kN, sums + kN);
  }
}

template <int kN>
void scalar_vjp(const float* logits, const float* dy, float* dlogits) {
  float p[kN * kN], sums[2 * kIterations * kN];
  scalar_forward<kN>(logits, p, sums);
  std::copy_n(dy, kN * kN, dlogits);
  for (int k = kIterations - 1; k >= 0; --k) {
    undo_division<kN>(p, dlogits, 1, kN, sums + (2 * k + 1) * kN);
    undo_division<kN>(p, dlogits, kN, 1, sums + 2 * k * kN);
  }
  for (int e = 0; e < kN * kN; ++e) dlogits[e] *= p[e];
}

/// The scalar loops as an op, on all threads like the others.
template <int kN>
Var scalar_sinkhorn(const Var& logits) {
  constexpr std::int64_t kBlock = 256, kSize = kN * kN;
  const Tensor z = logits.value();
  const std::int64_t matrices = z.numel() / kSize;
  Tensor p(z.shape(), DType::f32);
  const float* from = z.data<float>();
  float* to = p.mutable_data<float>();
  parallel_for(matrices, kBlock, [&](std::int64_t begin, std::int64_t end) {
    float sums[2 * kIterations * kN];
    for (std::int64_t b = begin; b < end; ++b) scalar_forward<kN>(from + b * kSize, to + b * kSize, sums);
  });
  return record("scalar_sinkhorn", p, {logits}, [z, matrices](const Tensor& dy) {
    Tensor dz(z.shape(), DType::f32);
    const float *from = z.data<float>(), *cotangent = dy.data<float>();
    float* to = dz.mutable_data<float>();
    parallel_for(matrices, kBlock, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b)
        scalar_vjp<kN>(from + b * kSize, cotangent + b * kSize, to + b * kSize);
    });
    return dz;
  });
}

using Function = std::function<Var(const Var&)>;

Var composed(const Var& z) {
  const Composed scope(Composed::Ops::connections);
  return mhc::sinkhorn_knopp(z, kIterations);
}

struct Form {
  std::string name;
  Function f;
};

template <int kN>
std::vector<Form> forms() {
  return {{"fused", [](const Var& z) { return mhc::sinkhorn_knopp(z, kIterations); }},
          {"scalar", scalar_sinkhorn<kN>},
          {"composed", composed}};
}

struct Result {
  Tensor p, dlogits;
};

Result evaluate(const Function& f, const Tensor& logits, const Tensor& dy) {
  Tape tape;
  const Var z = tape.watch(logits), p = f(z);
  tape.backward(p, dy);
  return {p.value(), tape.gradient(z)};
}

bool close(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return std::ranges::equal(x, y, [](double u, double v) { return std::abs(u - v) <= 2e-5; });
}

bool agrees(const Function& f, std::int64_t n) {
  Rng rng(1);
  const Tensor logits = randn({1001, n, n}, rng), dy = randn({1001, n, n}, rng);
  const Result got = evaluate(f, logits, dy);
  const Result expected = evaluate(composed, logits, dy);
  return close(got.p, expected.p) && close(got.dlogits, expected.dlogits);
}

void measure(benchmark::State& state, const Function& f, std::int64_t matrices, std::int64_t n, bool backward) {
  if (!agrees(f, n)) return state.SkipWithError("differs from the composed reference");
  Rng rng(2);
  const Tensor logits = randn({matrices, n, n}, rng), dy = randn({matrices, n, n}, rng);
  for (auto _ : state) {
    if (backward)
      benchmark::DoNotOptimize(evaluate(f, logits, dy));
    else
      benchmark::DoNotOptimize(f(logits));
  }
  state.counters["matrices_per_second"] =
      benchmark::Counter(static_cast<double>(matrices), benchmark::Counter::kIsIterationInvariantRate);
}

template <int kN>
void add_benchmarks(std::int64_t matrices) {
  for (const Form& form : forms<kN>())
    for (const bool backward : {false, true}) {
      const std::string title = fmt::format("sinkhorn/{}x{}x{}/{}/{}", matrices, kN, kN,
                                            backward ? "forward_backward" : "forward", form.name);
      auto run = [f = form.f, matrices, backward](benchmark::State& state) {
        measure(state, f, matrices, kN, backward);
      };
      with_percentiles(benchmark::RegisterBenchmark(title.c_str(), run))->Unit(benchmark::kMillisecond)->UseRealTime();
    }
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  return braid::bench::benchmark_main("bench_sinkhorn", argc, argv, [] {
    braid::bench::add_benchmarks<4>(65536);
    braid::bench::add_benchmarks<8>(8192);
  });
}

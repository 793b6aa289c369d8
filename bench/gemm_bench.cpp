// Matrix products at the shapes of transformers, in f32, f64 and bf16, and in f32 from bf16 terms, as shares of the
// multiply-add peak of their type measured in the same run.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <bench/benchmark_main.h>
#include <bench/machine.h>
#include <braid/core/products/gemm.h>
#include <braid/core/products/matmul.h>
#include <braid/core/random.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

/// The sizes of a [m, k] b [k, n]; transposed operands are [k, m] and [n, k] in memory.
struct Sizes {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;

  Tensor a(Rng& rng, DType dtype) const {
    return transpose_a ? randn({k, m}, rng).to(dtype).transpose() : randn({m, k}, rng).to(dtype);
  }
  Tensor b(Rng& rng, DType dtype) const {
    return transpose_b ? randn({n, k}, rng).to(dtype).transpose() : randn({k, n}, rng).to(dtype);
  }
};

std::string name(const Sizes& p) {
  return fmt::format("{}x{}x{}{}{}", p.m, p.n, p.k, p.transpose_a ? "/aT" : "", p.transpose_b ? "/bT" : "");
}

/// y = x w^T, dx = dy w, dw = dy^T x for x [tokens, in] and w [out, in].
void add_linear(std::vector<Sizes>& products, std::int64_t tokens, std::int64_t in, std::int64_t out) {
  products.push_back({tokens, out, in, false, true});
  products.push_back({tokens, in, out});
  products.push_back({out, in, tokens, true, false});
}

/// How products are computed.
struct Method {
  std::string name;
  DType dtype;
  double tolerance;    // of error()
  int bf16_terms = 0;  // per operand of f32
};

Tensor multiply(const Sizes& p, const Tensor& a, const Tensor& b, int bf16_terms) {
  if (a.dtype() != DType::f32) return matrix_product(a, b);
  Tensor c(Shape{p.m, p.n}, DType::f32);
  gemm<float>({.m = p.m,
               .n = p.n,
               .k = p.k,
               .a = {a.data<float>(), p.transpose_a ? p.m : p.k, p.transpose_a},
               .b = {b.data<float>(), p.transpose_b ? p.k : p.n, p.transpose_b},
               .c = {c.mutable_data<float>(), p.n},
               .bf16_terms = bf16_terms});
  return c;
}

/// The largest error of three rows against plain sums in f64, relative to sqrt(k), the size of an element.
double error(const Sizes& p, const Tensor& a, const Tensor& b, int bf16_terms) {
  const auto n = static_cast<std::size_t>(p.n), k = static_cast<std::size_t>(p.k);
  const Tensor c = multiply(p, a, b, bf16_terms);
  const std::vector<double> right = b.to_vector<double>();
  double worst = 0;
  for (const std::int64_t row : {std::int64_t{0}, p.m / 2, p.m - 1}) {
    const std::vector<double> left = a.slice(0, row, row + 1).to_vector<double>();
    const std::vector<double> actual = c.slice(0, row, row + 1).to_vector<double>();
    std::vector<double> expected(n);
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < n; ++j) expected[j] += left[i] * right[i * n + j];
    for (std::size_t j = 0; j < n; ++j) worst = std::max(worst, std::abs(actual[j] - expected[j]));
  }
  return worst / std::sqrt(static_cast<double>(p.k));
}

void run(benchmark::State& state, const Sizes& p, const Method& method) {
  Rng rng(1);
  const Tensor a = p.a(rng, method.dtype), b = p.b(rng, method.dtype);
  if (error(p, a, b, method.bf16_terms) > method.tolerance)
    return state.SkipWithError("the product differs from plain sums in f64");
  for (auto _ : state) benchmark::DoNotOptimize(multiply(p, a, b, method.bf16_terms));
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double peak = machine().flops_of(method.dtype);
  using benchmark::Counter;
  state.counters["flops"] = Counter(flops, Counter::kIsIterationInvariantRate);
  state.counters["share_of_peak"] = Counter(flops / peak, Counter::kIsIterationInvariantRate);
}

std::vector<Sizes> transformer_products() {
  std::vector<Sizes> products{{512, 3072, 768}};
  add_linear(products, 512, 768, 3072);
  for (const auto& [tokens, channels] : {std::pair{768, 128}, {2048, 384}}) {
    add_linear(products, tokens, channels, channels);
    add_linear(products, tokens, channels, 4 * channels);
    add_linear(products, tokens, channels, 65);
  }
  return products;
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  using namespace braid::bench;
  return benchmark_main("bench_gemm", argc, argv, [] {
    using braid::DType;
    std::vector<Method> methods{{"f32", DType::f32, 1e-5},
                                {"f64", DType::f64, 1e-13},
                                {"bf16", DType::bf16, 0x1p-5},
                                {"f32_as_1_bf16", DType::f32, 0x1p-5, 1}};
    if (braid::bf16_products() == std::string_view("AMX")) {
      methods.push_back({"f32_as_2_bf16", DType::f32, 1e-4, 2});
      methods.push_back({"f32_as_3_bf16", DType::f32, 1e-5, 3});
    }
    for (const Method& method : methods)
      for (const Sizes& product : transformer_products())
        benchmark::RegisterBenchmark(fmt::format("gemm/{}/{}", method.name, name(product)).c_str(),
                                     [=](benchmark::State& state) { run(state, product, method); })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
  });
}

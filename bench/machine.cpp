#include <bench/machine.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <braid/core/parallel.h>
#include <braid/core/products/gemm.h>
#include <braid/core/tensor.h>

#define HWY_TARGET_INCLUDE "bench/machine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Runs `rounds` multiply-adds in each of 12 independent chains, which hide the latency and fit 16 registers.
/// Returns how many operations that were; `sink` keeps the compiler from leaving them out.
template <class T>
double multiply_add(std::int64_t rounds, double* sink) {
  constexpr int kChains = 12;
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kChains];
  for (auto& sum : sums) sum = hn::Zero(d);
  const auto a = hn::Set(d, static_cast<T>(0.999)), b = hn::Set(d, static_cast<T>(1e-3));
  for (std::int64_t round = 0; round < rounds; ++round)
    for (auto& sum : sums) sum = hn::MulAdd(sum, a, b);
  auto total = hn::Zero(d);
  for (const auto& sum : sums) total = hn::Add(total, sum);
  *sink = hn::GetLane(hn::SumOfLanes(d, total));
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

double multiply_add_f32(std::int64_t rounds, double* sink) { return multiply_add<float>(rounds, sink); }
double multiply_add_f64(std::int64_t rounds, double* sink) { return multiply_add<double>(rounds, sink); }

}  // namespace
}  // namespace braid::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::bench {
namespace {

HWY_EXPORT(multiply_add_f32);
HWY_EXPORT(multiply_add_f64);

#ifdef __x86_64__
/// multiply_add of bf16, two to a float. A Zen 5, which begins two a cycle, needs 14 chains.
__attribute__((target("avx512f,avx512bf16"))) double multiply_add_bf16(std::int64_t rounds, double* sink) {
  constexpr int kChains = 16;
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5F), _mm512_set1_ps(0.5F));
  for (std::int64_t round = 0; round < rounds; ++round)
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, a);
  for (const __m512& sum : sums) *sink += static_cast<double>(sum[0]);
  return 4.0 * kChains * 16 * static_cast<double>(rounds);
}

/// Products of four pairs of tiles; returns the number of operations.
__attribute__((target("amx-tile,amx-bf16"))) double multiply_tiles(std::int64_t rounds, double*) {
  struct alignas(64) Configuration {
    std::uint8_t palette = 1, first_row = 0, reserved[14] = {};
    std::uint16_t bytes_of_rows[16] = {64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  };
  static constexpr Configuration configuration;
  _tile_loadconfig(&configuration);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  return 2.0 * 4 * 16 * 16 * 32 * static_cast<double>(rounds);
}

double multiply_bf16(std::int64_t rounds, double* sink) {
  return bf16_products() == std::string_view("AMX") ? multiply_tiles(rounds / 10, sink)
                                                    : multiply_add_bf16(rounds, sink);
}
#else
double multiply_bf16(std::int64_t, double*) { return 0; }
#endif

/// In seconds.
template <class F>
double time(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The shortest of 10 runs.
template <class F>
double shortest(F f) {
  double best = 1e9;
  for (int run = 0; run < 10; ++run) best = std::min(best, time(f));
  return best;
}

double measure_flops(double (*multiply_add)(std::int64_t rounds, double* sink)) {
  const int threads = num_threads();
  std::vector<double> sinks(static_cast<std::size_t>(threads));
  double operations = 0;
  const double seconds = shortest([&] {
    parallel_for(threads, 1, [&](std::int64_t thread, std::int64_t) {
      const double done = multiply_add(2'000'000, &sinks[static_cast<std::size_t>(thread)]);
      if (thread == 0) operations = done;
    });
  });
  return operations * threads / seconds;
}

/// A copy of up to 128 MiB. Of tensors, because they lie in huge pages as the operands of all ops do.
class Copy {
 public:
  static constexpr std::int64_t kLargest = 128 << 20;

  double time(std::int64_t bytes) {
    constexpr std::int64_t kBlock = 64 << 10;
    std::byte* to = to_.mutable_bytes();
    return bench::time([&] {
      parallel_for(bytes, kBlock, [&](std::int64_t begin, std::int64_t end) {
        std::memcpy(to + begin, from_.bytes() + begin, static_cast<std::size_t>(end - begin));
      });
    });
  }
  /// Read and written per second at best.
  double rate(std::int64_t bytes) {
    return 2.0 * static_cast<double>(bytes) / shortest([&] { time(bytes); });
  }

 private:
  Tensor from_ = ones({kLargest / 4}), to_ = zeros({kLargest / 4});
};

Copy& copier() {
  static Copy copy;
  return copy;
}

Machine measure() {
  constexpr std::int64_t kSmallest = 1 << 20;
  Copy& copy = copier();
  const double slowest = copy.rate(Copy::kLargest);
  std::int64_t bytes = Copy::kLargest;
  while (bytes > kSmallest && copy.rate(bytes / 2) < 1.15 * slowest) bytes /= 2;
  const double f32 = measure_flops(HWY_DYNAMIC_DISPATCH(multiply_add_f32));
  const bool has_bf16 = bf16_products() != std::string_view("f32");
  return {f32, measure_flops(HWY_DYNAMIC_DISPATCH(multiply_add_f64)), has_bf16 ? measure_flops(multiply_bf16) : f32,
          slowest, 2 * bytes};
}

Machine& best_so_far() {
  static Machine machine = measure();
  return machine;
}

}  // namespace

const Machine& machine() { return best_so_far(); }

const Machine& machine_again() {
  Machine& best = best_so_far();
  const Machine now = measure();
  for (const auto limit : {&Machine::flops, &Machine::flops_f64, &Machine::flops_bf16, &Machine::copy_bytes})
    best.*limit = std::max(best.*limit, now.*limit);
  return best;
}

double copy_bytes_now() {
  const std::int64_t bytes = machine().cache_bytes / 2;
  return 2.0 * static_cast<double>(bytes) / copier().time(bytes);
}

}  // namespace braid::bench
#endif

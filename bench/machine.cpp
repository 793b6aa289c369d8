#include <bench/machine.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <braid/core/parallel.h>
#include <braid/core/tensor.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/machine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace braid::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Runs `rounds` multiply-adds in each of 12 independent chains, which hide the latency and fit 16 registers.
/// Returns how many operations that were; `sink` keeps the compiler from leaving them out.
double multiply_add(std::int64_t rounds, float* sink) {
  constexpr int kChains = 12;
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> sums[kChains];
  for (auto& sum : sums) sum = hn::Zero(d);
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 1e-3f);
  for (std::int64_t round = 0; round < rounds; ++round)
    for (auto& sum : sums) sum = hn::MulAdd(sum, a, b);
  auto total = hn::Zero(d);
  for (const auto& sum : sums) total = hn::Add(total, sum);
  *sink = hn::GetLane(hn::SumOfLanes(d, total));
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace
}  // namespace braid::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::bench {
namespace {

HWY_EXPORT(multiply_add);

/// The shortest of 10 runs, in seconds.
template <class F>
double shortest(F f) {
  double best = 1e9;
  for (int run = 0; run < 10; ++run) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

double measure_flops() {
  const int threads = num_threads();
  std::vector<float> sinks(static_cast<std::size_t>(threads));
  double operations = 0;
  const double seconds = shortest([&] {
    parallel_for(threads, 1, [&](std::int64_t thread, std::int64_t) {
      const double done = HWY_DYNAMIC_DISPATCH(multiply_add)(2'000'000, &sinks[static_cast<std::size_t>(thread)]);
      if (thread == 0) operations = done;
    });
  });
  return operations * threads / seconds;
}

/// Tensors, because they lie in huge pages as the operands of all ops do.
double copy_rate(Tensor& to, const Tensor& from, std::int64_t bytes) {
  constexpr std::int64_t kBlock = 64 << 10;
  std::byte* target = to.mutable_bytes();
  const double seconds = shortest([&] {
    parallel_for(bytes, kBlock, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(target + begin, from.bytes() + begin, static_cast<std::size_t>(end - begin));
    });
  });
  return 2.0 * static_cast<double>(bytes) / seconds;
}

Machine measure() {
  constexpr std::int64_t kLargest = 256 << 20, kSmallest = 1 << 20;
  const Tensor from = ones({kLargest / 4});
  Tensor to = zeros({kLargest / 4});
  const double slowest = copy_rate(to, from, kLargest);
  std::int64_t bytes = kLargest;
  while (bytes > kSmallest && copy_rate(to, from, bytes / 2) < 1.15 * slowest) bytes /= 2;
  return {measure_flops(), slowest, 2 * bytes};
}

}  // namespace

const Machine& machine() {
  static const Machine measured = measure();
  return measured;
}

}  // namespace braid::bench
#endif

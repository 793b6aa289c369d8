#pragma once
#include <functional>

#include <apps/common/run_main.h>
#include <benchmark/benchmark.h>
#include <braid/core/error.h>

namespace braid::bench {

/// The main of a Google Benchmark program; `add` registers its benchmarks.
inline int benchmark_main(const char* name, int argc, char** argv, const std::function<void()>& add) {
  return apps::run_main(name, [&] {
    benchmark::Initialize(&argc, argv);
    check_value(argc == 1, "the argument {} is unknown", argc == 1 ? "" : argv[1]);
    add();
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  });
}

}  // namespace braid::bench

#pragma once
#include <algorithm>
#include <functional>
#include <string_view>

#include <apps/common/run_main.h>
#include <benchmark/benchmark.h>
#include <braid/core/error.h>

namespace braid::bench {

/// The main of a Google Benchmark program; `add` registers its benchmarks.
inline int benchmark_main(const char* name, int argc, char** argv, const std::function<void()>& add) {
  return apps::run_main(name, [&] {
    if (std::find(argv, argv + argc, std::string_view("--version")) != argv + argc) {
      fmt::print("{}\n", apps::version_text(name));
      return 0;
    }
    benchmark::Initialize(&argc, argv);
    check_value(argc == 1, "the argument {} is unknown", argc == 1 ? "" : argv[1]);
    add();
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  });
}

}  // namespace braid::bench

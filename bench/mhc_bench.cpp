// Hyper-connections over tokens B, streams n and channels C: times the fused and the composed form after comparing the
// two, forward and forward + backward, in throughput and in latency. `--full` selects a larger grid.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <bench/benchmark_main.h>
#include <bench/machine.h>
#include <bench/mhc_workload.h>
#include <bench/statistics.h>
#include <braid/core/storage.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

struct Case {
  MHCOperation operation;
  Mode mode;
};

std::vector<Case> cases_of(const std::vector<std::pair<Mode, MHCSizes>>& grid) {
  std::vector<Case> cases;
  for (const auto& [mode, sizes] : grid)
    for (MHCOperation& operation : stream_operations(sizes)) cases.push_back({std::move(operation), mode});
  return cases;
}

/// Lines through C 512 and n = 4 for 64 tokens and for one, two sizes of a training step, and Sinkhorn's n.
std::vector<Case> usual_cases() {
  std::vector<std::pair<Mode, MHCSizes>> grid;
  for (const auto& [mode, tokens] : {std::pair{Mode::throughput, 64}, {Mode::latency, 1}}) {
    for (const int channels : {64, 128, 256, 512, 1024, 2048}) grid.push_back({mode, {tokens, 4, channels}});
    for (const int streams : {1, 2, 8, 16}) grid.push_back({mode, {tokens, streams, 512}});
  }
  for (const int channels : {128, 512}) grid.push_back({Mode::throughput, {4096, 4, channels}});
  std::vector<Case> cases = cases_of(grid);
  for (const int n : {2, 4, 8, 16})
    for (const auto& [mode, tokens] : {std::pair{Mode::throughput, 4096}, {Mode::latency, 1}})
      cases.push_back({sinkhorn_operation(tokens, n), mode});
  return cases;
}

/// All sizes up to streams of 256 MiB per call.
std::vector<Case> all_cases() {
  std::vector<std::pair<Mode, MHCSizes>> grid;
  for (const auto& [mode, tokens] : {std::pair{Mode::throughput, 64}, {Mode::throughput, 4096}, {Mode::latency, 1}})
    for (const int streams : {1, 2, 3, 4, 6, 8, 16, 32})
      for (const int channels : {64, 128, 256, 384, 512, 768, 1024, 2048})
        if (std::int64_t{4} * tokens * streams * channels <= 256 << 20)
          grid.push_back({mode, {tokens, streams, channels}});
  std::vector<Case> cases = cases_of(grid);
  for (const int n : {2, 3, 4, 6, 8, 16, 32})
    for (const auto& [mode, tokens] :
         {std::pair{Mode::throughput, 4096}, {Mode::throughput, 65536}, {Mode::latency, 1}})
      cases.push_back({sinkhorn_operation(tokens, n), mode});
  return cases;
}

/// Benchmarks of one case follow each other, so that only its buffers need to exist.
class Workbench {
 public:
  Workload& workload(const std::shared_ptr<const Case>& wanted) {
    if (wanted != current_) {
      workload_.reset();
      release_cached_memory();
      workload_ = std::make_unique<Workload>(wanted->operation, wanted->mode);
      difference_ = workload_->difference();
      current_ = wanted;
    }
    return *workload_;
  }
  /// The difference between the forms of the current workload; empty if they agree.
  const std::string& difference() const { return difference_; }

 private:
  std::shared_ptr<const Case> current_;
  std::unique_ptr<Workload> workload_;
  std::string difference_;
};

/// `calls` is the number of calls in one iteration, whose time is that of all of them.
void report(benchmark::State& state, double calls, double bytes, double copy_bytes) {
  using benchmark::Counter;
  state.counters["calls"] = calls;
  state.counters["bytes_per_second"] = Counter(calls * bytes, Counter::kIsIterationInvariantRate);
  state.counters["share_of_copy"] = Counter(calls * bytes / copy_bytes, Counter::kIsIterationInvariantRate);
}

void measure(benchmark::State& state, Workbench& bench, const std::shared_ptr<const Case>& c, Form form, Pass pass) {
  Workload& workload = bench.workload(c);
  if (!bench.difference().empty()) return state.SkipWithError(bench.difference().c_str());
  workload.warm_up(pass);
  workload.run(form, pass);  // for memory that only this form needs
  const double copy_bytes = c->mode == Mode::latency ? machine().copy_bytes : copy_bytes_now();
  for (auto _ : state) workload.run(form, pass);
  const MHCTraffic& bytes = c->operation.bytes;
  report(state, static_cast<double>(workload.calls()),
         pass == Pass::forward ? bytes.forward : bytes.forward + bytes.vjp, copy_bytes);
}

void add_benchmarks(const std::shared_ptr<Workbench>& bench, const std::shared_ptr<const Case>& c) {
  const bool many_tokens = c->operation.output[0] >= 1024;  // one call takes milliseconds: still several in a row
  for (const auto& [pass, pass_name] :
       {std::pair{Pass::forward, "forward"}, {Pass::forward_backward, "forward_backward"}})
    for (const auto& [form, form_name] : {std::pair{Form::fused, "fused"}, {Form::composed, "composed"}}) {
      const std::string title = fmt::format("{}/{}/{}/{}", c->operation.name,
                                            c->mode == Mode::latency ? "latency" : "throughput", pass_name, form_name);
      auto run = [bench, c, form = form, pass = pass](benchmark::State& state) {
        measure(state, *bench, c, form, pass);
      };
      with_percentiles(benchmark::RegisterBenchmark(title.c_str(), run))
          ->Repetitions(9)
          ->MinTime(many_tokens ? 0.1 : 0.01)
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
}

/// Whether --full is among the arguments; removes it from them.
bool take_full(int& argc, char** argv) {
  const auto is_full = [](const char* argument) { return std::string_view(argument) == "--full"; };
  char** const end = std::remove_if(argv + 1, argv + argc, is_full);
  return std::exchange(argc, static_cast<int>(end - argv)) != argc;
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  using namespace braid::bench;
  const bool full = take_full(argc, argv);
  return benchmark_main("bench_mhc", argc, argv, [&] {
    const auto bench = std::make_shared<Workbench>();
    for (Case& c : full ? all_cases() : usual_cases())
      add_benchmarks(bench, std::make_shared<const Case>(std::move(c)));
  });
}

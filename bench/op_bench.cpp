#include <bench/op_bench.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include <bench/machine.h>
#include <benchmark/benchmark.h>
#include <braid/core/random.h>
#include <fmt/ranges.h>

namespace braid::bench {
namespace {

std::vector<Tensor> random_tensors(const OpBench& op) {
  Rng rng(1);
  std::vector<Tensor> tensors;
  for (const Shape& shape : op.shapes) tensors.push_back(randn(shape, rng).to(op.dtype));
  return tensors;
}

/// One evaluation on a tape, ready for its vjp.
struct Recording {
  Tape tape;
  std::vector<Var> inputs;
  Var y;

  Recording(const Function& f, const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) inputs.push_back(tape.watch(tensor));
    y = f(inputs);
  }
};

/// In bf16 within a few roundings, since the composed form rounds each result on the way.
bool close(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  const double bound = a.dtype() == DType::bf16 ? 0.05 : 2e-4;
  return std::ranges::equal(
      x, y, [bound](double u, double v) { return std::abs(u - v) <= bound * std::max(1.0, std::abs(v)); });
}

/// Whether the fused and the composed form have the same value and gradients.
bool agree(const OpBench& op, const std::vector<Tensor>& inputs, const Tensor& dy) {
  Recording fused(op.fused, inputs), composed(op.composed, inputs);
  bool same = close(fused.y.value(), composed.y.value());
  fused.tape.backward(fused.y, dy);
  composed.tape.backward(composed.y, dy);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    same = same && close(fused.tape.gradient(fused.inputs[i]), composed.tape.gradient(composed.inputs[i]));
  return same;
}

void report(benchmark::State& state, const Work& work, DType dtype) {
  using benchmark::Counter;
  const auto per_second = [](double amount) { return Counter(amount, Counter::kIsIterationInvariantRate); };
  if (work.bytes > 0) {
    state.counters["bytes_per_second"] = per_second(work.bytes);
    state.counters["share_of_copy"] = per_second(work.bytes / machine().copy_bytes);
  }
  if (work.flops > 0) {
    state.counters["flops"] = per_second(work.flops);
    state.counters["share_of_peak"] = per_second(work.flops / machine().flops_of(dtype));
  }
}

void run_forward(benchmark::State& state, const Function& f, const std::vector<Tensor>& tensors, const Work& work) {
  const std::vector<Var> inputs(tensors.begin(), tensors.end());
  for (auto _ : state) benchmark::DoNotOptimize(f(inputs));
  report(state, work, tensors.front().dtype());
}

/// Times the vjp alone, not the evaluation that it needs.
void run_vjp(benchmark::State& state, const Function& f, const std::vector<Tensor>& inputs, const Tensor& dy,
             const Work& work) {
  for (auto _ : state) {
    Recording recording(f, inputs);
    const auto start = std::chrono::steady_clock::now();
    recording.tape.backward(recording.y, dy);
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  report(state, work, dy.dtype());
}

/// An op with its inputs, made and checked when the first of its benchmarks runs.
class Prepared {
 public:
  explicit Prepared(OpBench op) : op(std::move(op)) {}

  bool ready() {
    if (!checked_) {
      inputs = random_tensors(op);
      Rng rng(2);
      dy = randn(op.fused(std::vector<Var>(inputs.begin(), inputs.end())).shape(), rng).to(op.dtype);
      checked_ = !op.composed || agree(op, inputs, dy);
    }
    return *checked_;
  }

  const OpBench op;
  std::vector<Tensor> inputs;
  Tensor dy;

 private:
  std::optional<bool> checked_;
};

std::string name(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

}  // namespace

void add_benchmarks(OpBench op) {
  const std::string sizes = op.sizes.empty() ? name(op.shapes[0]) : op.sizes;
  const auto prepared = std::make_shared<Prepared>(std::move(op));
  const auto add = [&](const char* pass, const char* form, auto run) {
    const std::string title = fmt::format("{}/{}/{}/{}", prepared->op.name, sizes, pass, form);
    auto checked = [prepared, run](benchmark::State& state) {
      if (!prepared->ready()) return state.SkipWithError("the fused op differs from the composed one");
      run(state, *prepared);
    };
    return benchmark::RegisterBenchmark(title.c_str(), checked)->Unit(benchmark::kMicrosecond);
  };
  for (const auto& [form, f] : {std::pair{"fused", &OpBench::fused}, std::pair{"composed", &OpBench::composed}}) {
    if (!(prepared->op.*f)) continue;
    add("forward", form, [f = f](benchmark::State& state, const Prepared& p) {
      run_forward(state, p.op.*f, p.inputs, p.op.forward);
    })->UseRealTime();
    add("vjp", form, [f = f](benchmark::State& state, const Prepared& p) {
      run_vjp(state, p.op.*f, p.inputs, p.dy, p.op.vjp);
    })->UseManualTime();
  }
}

}  // namespace braid::bench

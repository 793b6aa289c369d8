// The fused ops, forward and vjp, as shares of what the machine gives: copy bandwidth for those that move memory, the
// multiply-add peak for attention. Each stands beside its composition of plain ops, which it is first compared with.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bench/machine.h>
#include <benchmark/benchmark.h>
#include <braid/autograd/ops.h>
#include <braid/core/random.h>
#include <fmt/ranges.h>

namespace braid::bench {
namespace {

using Vars = std::span<const Var>;
using Function = std::function<Var(Vars)>;

/// What one call moves or computes at least.
struct Work {
  double bytes = 0;
  double flops = 0;
};

struct OpBench {
  std::string name;
  std::vector<Shape> shapes;
  Function fused, composed;
  Work forward, vjp;
};

Var composed_rms_norm(Vars x) { return x[0] * rsqrt(mean(x[0] * x[0], {-1}, true) + 1e-5) * x[1]; }

Var composed_layer_norm(Vars x) {
  const Var centred = x[0] - mean(x[0], {-1}, true);
  return centred * rsqrt(mean(centred * centred, {-1}, true) + 1e-5) * x[1] + x[2];
}

Var composed_softmax(Vars x) {
  const Var e = exp(x[0] - max(x[0], {-1}, true));
  return e / sum(e, {-1}, true);
}

/// 1 where a query may look, 0 for the keys behind it. [T, T]
Tensor causal_mask(std::int64_t length) {
  Tensor mask = zeros({length, length}, DType::i32);
  for (std::int64_t t = 0; t < length; ++t) std::fill_n(mask.mutable_data<std::int32_t>() + t * length, t + 1, 1);
  return mask;
}

Var composed_attention(Vars x) {
  const std::int64_t length = x[0].size(1), depth = x[0].size(3);
  const auto heads_first = [](const Var& v) { return permute(v, {0, 2, 1, 3}); };
  const Var scores = matmul(heads_first(x[0]), transpose(heads_first(x[1]))) / std::sqrt(static_cast<double>(depth));
  const Var seen = where(causal_mask(length), scores, Var(full(Shape{}, -1e30)));
  return heads_first(matmul(softmax(seen), heads_first(x[2])));
}

/// Ops on rows [rows, width] of f32: the forward pass reads x and writes y, the vjp reads dy and x and writes dx.
std::vector<OpBench> row_benches(std::int64_t rows, std::int64_t width) {
  const Shape x{rows, width}, parameter{width};
  const double bytes = 4.0 * static_cast<double>(rows * width);
  Rng rng(5);
  const Tensor targets = randint(0, width, {rows}, rng);
  const auto fused_loss = [targets](Vars v) { return cross_entropy(v[0], targets); };
  const auto composed_loss = [targets](Vars v) { return -mean(gather(log_softmax(v[0]), 1, targets.expand_dims(1))); };
  const Work two{2 * bytes}, three{3 * bytes};
  return {
      {"rms_norm", {x, parameter}, [](Vars v) { return rms_norm(v[0], v[1]); }, composed_rms_norm, two, three},
      {"layer_norm",
       {x, parameter, parameter},
       [](Vars v) { return layer_norm(v[0], v[1], v[2]); },
       composed_layer_norm,
       two,
       three},
      {"softmax", {x}, [](Vars v) { return softmax(v[0]); }, composed_softmax, two, three},
      {"cross_entropy", {x}, fused_loss, composed_loss, {bytes}, two},
  };
}

/// Two products of the triangle of T (T + 1) / 2 scores in the forward pass, five in the vjp.
OpBench attention_bench(const Shape& shape) {
  const auto length = static_cast<double>(shape[1]);
  const double product = static_cast<double>(shape[0] * shape[2] * shape[3]) * length * (length + 1);
  return {"attention",        {shape, shape, shape}, [](Vars v) { return causal_attention(v[0], v[1], v[2]); },
          composed_attention, {0, 2 * product},      {0, 5 * product}};
}

std::vector<Tensor> random_tensors(const std::vector<Shape>& shapes) {
  Rng rng(1);
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) tensors.push_back(randn(shape, rng));
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

bool close(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return std::ranges::equal(x, y,
                            [](double u, double v) { return std::abs(u - v) <= 2e-4 * std::max(1.0, std::abs(v)); });
}

/// Whether the fused op and the composed one give the same value and gradients.
bool agree(const OpBench& op, const std::vector<Tensor>& inputs, const Tensor& dy) {
  Recording fused(op.fused, inputs), composed(op.composed, inputs);
  bool same = close(fused.y.value(), composed.y.value());
  fused.tape.backward(fused.y, dy);
  composed.tape.backward(composed.y, dy);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    same = same && close(fused.tape.gradient(fused.inputs[i]), composed.tape.gradient(composed.inputs[i]));
  return same;
}

void report(benchmark::State& state, const Work& work) {
  using benchmark::Counter;
  const auto per_second = [](double amount) { return Counter(amount, Counter::kIsIterationInvariantRate); };
  if (work.bytes > 0) {
    state.counters["bytes_per_second"] = per_second(work.bytes);
    state.counters["share_of_copy"] = per_second(work.bytes / machine().copy_bytes);
  }
  if (work.flops > 0) {
    state.counters["flops"] = per_second(work.flops);
    state.counters["share_of_peak"] = per_second(work.flops / machine().flops);
  }
}

void run_forward(benchmark::State& state, const Function& f, const std::vector<Tensor>& tensors, const Work& work) {
  const std::vector<Var> inputs(tensors.begin(), tensors.end());
  for (auto _ : state) benchmark::DoNotOptimize(f(inputs));
  report(state, work);
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
  report(state, work);
}

/// An op with its inputs, made and checked when the first of its benchmarks runs.
class Prepared {
 public:
  explicit Prepared(OpBench op) : op(std::move(op)) {}

  bool ready() {
    if (!checked_) {
      inputs = random_tensors(op.shapes);
      Rng rng(2);
      dy = randn(op.fused(std::vector<Var>(inputs.begin(), inputs.end())).shape(), rng);
      checked_ = agree(op, inputs, dy);
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

void add_benchmarks(OpBench op) {
  const auto prepared = std::make_shared<Prepared>(std::move(op));
  const auto add = [&](const char* pass, const char* form, auto run) {
    const std::string title = fmt::format("{}/{}/{}/{}", prepared->op.name, name(prepared->op.shapes[0]), pass, form);
    auto checked = [prepared, run](benchmark::State& state) {
      if (!prepared->ready()) return state.SkipWithError("the fused op differs from the composed one");
      run(state, *prepared);
    };
    return benchmark::RegisterBenchmark(title.c_str(), checked)->Unit(benchmark::kMicrosecond);
  };
  for (const auto& [form, f] : {std::pair{"fused", &OpBench::fused}, std::pair{"composed", &OpBench::composed}}) {
    add("forward", form, [f = f](benchmark::State& state, const Prepared& p) {
      run_forward(state, p.op.*f, p.inputs, p.op.forward);
    })->UseRealTime();
    add("vjp", form, [f = f](benchmark::State& state, const Prepared& p) {
      run_vjp(state, p.op.*f, p.inputs, p.dy, p.op.vjp);
    })->UseManualTime();
  }
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  using namespace braid::bench;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const auto& [rows, width] : {std::pair{2048, 384}, {16384, 1024}})
    for (OpBench& op : row_benches(rows, width)) add_benchmarks(std::move(op));
  for (const braid::Shape& shape : {braid::Shape{12, 64, 4, 32}, braid::Shape{8, 256, 6, 64}})
    add_benchmarks(attention_bench(shape));
  benchmark::RunSpecifiedBenchmarks();
}

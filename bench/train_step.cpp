// One training step of the reference transformer: forward, backward, clipping, AdamW. One JSON line per
// connection. --hvp: a product with the Hessian of its loss instead.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include <apps/common/connection_options.h>
#include <apps/common/memory.h>
#include <apps/common/run_main.h>
#include <apps/platform/memory.h>
#include <bench/machine.h>

namespace {

using namespace braid;

struct Options {
  std::string connection = "mhc", mixing = "sinkhorn", path = mhc::composed() ? "reference" : "fused", dtype = "f32";
  std::int64_t channels = 384, context = 256, batch = 8, vocab = 65;
  std::optional<std::int64_t> streams;
  int layers = 6, heads = 6, steps = 10, threads = apps::threads_or(2);
  std::int64_t keep_every = 1, depth_block = 1;
  bool compare = false, profile = false, hvp = false, plan = false;
  std::string trace;
  MatmulPrecision matmul_precision = MatmulPrecision::highest;
  Bits bits = Bits::fast;
};

std::int64_t streams(const Options& o, const std::string& connection) {
  return o.streams.value_or(mhc::default_streams(mhc::connection_kind(connection)));
}

/// 0: planned by keep_interval().
std::int64_t keep_every(const Options& o) {
  return o.keep_every == 0 ? mhc::keep_interval(streams(o, o.connection), 2 * o.layers) : o.keep_every;
}

constexpr int kWarmUp = 2;

/// A model in training with one kind of connection.
class Run {
 public:
  Run(const Options& o, const std::string& connection)
      : name(connection),
        tokens_(randint(0, o.vocab, {o.batch, o.context}, rng_)),
        targets_(randint(0, o.vocab, {o.batch, o.context}, rng_)),
        model_(make_model(o, connection, rng_)) {}

  void step(Profile* profile = nullptr) {
    const auto lap = [&](const char* name) {
      if (profile != nullptr) profile->lap(name);
    };
    const auto start = std::chrono::steady_clock::now();
    if (profile != nullptr) profile->start();
    auto [loss, grads] = value_and_grad(kLoss, profile)(model_, tokens_, targets_);
    lap("(return)");
    const double factor = nn::clipping(grads, 1.0).factor;
    lap("(clip)");
    optimizer_.step(model_, grads, factor);
    lap("(optimizer)");
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    ms_.push_back(elapsed.count());
    loss_ = loss;
  }

  /// A gradient, then the product of the Hessian with it.
  void product() {
    const auto start = std::chrono::steady_clock::now();
    auto [loss, grads] = value_and_grad(kLoss)(model_, tokens_, targets_);
    const auto middle = std::chrono::steady_clock::now();
    hvp(kLoss, model_, grads, tokens_, targets_);
    const std::chrono::duration<double, std::milli> gradient = middle - start,
                                                    product = std::chrono::steady_clock::now() - middle;
    gradient_ms_.push_back(gradient.count());
    ms_.push_back(product.count());
    loss_ = loss;
  }

  double median_ms() const { return median(ms_); }
  double median_gradient_ms() const { return median(gradient_ms_); }  // of products alone
  double loss() const { return loss_; }
  std::int64_t parameters() const { return num_params(model_); }

  const std::string name;

 private:
  using Model = nn::Transformer<mhc::Connection>;
  static constexpr auto kLoss = [](const Model& m, const Tensor& x, const Tensor& y) { return m.loss(x, y); };

  /// Of what was measured after the warm-up.
  static double median(const std::vector<double>& all) {
    std::vector<double> ms(all.begin() + kWarmUp, all.end());
    std::ranges::sort(ms);
    return ms[ms.size() / 2];
  }

  static Model make_model(const Options& o, const std::string& connection, Rng& rng) {
    const nn::TransformerConfig sizes{.vocab = o.vocab,
                                      .context = o.context,
                                      .channels = o.channels,
                                      .layers = o.layers,
                                      .heads = o.heads,
                                      .dtype = o.dtype == "bf16" ? DType::bf16 : DType::f32};
    const mhc::ConnectionConfig config{.kind = mhc::connection_kind(connection),
                                       .streams = o.streams,
                                       .mixing = o.mixing,
                                       .depth_block = o.depth_block,
                                       .keep_every = keep_every(o)};
    const Model model(sizes, rng, [&](int index) { return mhc::Connection(config, o.channels, index, rng); });
    return nn::to_dtype(model, o.dtype == "f64" ? DType::f64 : DType::f32);
  }

  Rng rng_{0};
  Tensor tokens_, targets_;
  Model model_;
  nn::AdamW optimizer_{{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1, .decays = nn::decay_everything}};
  std::vector<double> ms_, gradient_ms_;
  double loss_ = 0;
};

/// Operations of the matrix products of a step, without connections.
double flops_per_step(const Options& o) {
  const auto c = static_cast<double>(o.channels), t = static_cast<double>(o.context);
  const double weights = o.layers * 12 * c * c + static_cast<double>(o.vocab) * c;
  return static_cast<double>(o.batch) * t * (6 * weights + 6 * o.layers * c * t);
}

/// `allocations` counts system allocations after the first step; `residual_ms` is 0 without a comparison.
void print(const Options& o, const Run& run, std::int64_t allocations, double residual_ms) {
  const double ms = run.median_ms();
  fmt::print(
      R"({{"peer": "braid", "connection": "{}", "channels": {}, "layers": {}, "heads": {}, "context": {}, )"
      R"("batch": {}, "vocab": {}, "streams": {}, "keep_every": {}, "steps": {}, "threads": {}, "dtype": "{}", )"
      R"("matmul_precision": "{}", "bits": "{}", "parameters": {}, {}, {}"tokens_per_s": {:.0f}, "gflops": {:.1f}, )"
      R"("loss": {:.4f}, "peak_rss_mb": {}, "system_allocations_after_first_step": {}}})"
      "\n",
      run.name, o.channels, o.layers, o.heads, o.context, o.batch, o.vocab, streams(o, run.name), keep_every(o),
      o.steps, o.threads, o.dtype, name(o.matmul_precision), name(o.bits), run.parameters(),
      o.hvp ? fmt::format(R"("ms_gradient": {:.2f}, "ms_hvp": {:.2f})", run.median_gradient_ms(), ms)
            : fmt::format(R"("ms_per_step": {:.2f})", ms),
      residual_ms > 0 ? fmt::format(R"("ratio_to_residual": {:.4f}, )", ms / residual_ms) : "",
      1e3 * static_cast<double>(o.batch * o.context) / ms, flops_per_step(o) / ms / 1e6, run.loss(),
      platform::peak_bytes() >> 20, allocations);
}

std::vector<std::string> connections(const Options& o) {
  return o.compare ? std::vector<std::string>{"residual", "hc", "mhc", "single-pass"} : std::vector{o.connection};
}

void check_settings(const Options& o) {
  const std::vector<std::string> kinds = connections(o);
  apps::check_all_apply({.kind = o.connection,
                         .streams = o.streams,
                         .mixing = o.mixing,
                         .depth_block = o.depth_block,
                         .keep_every = o.keep_every},
                        kinds);
}

/// The connections take their steps in turn, so that other load on the machine affects all of them.
void measure(const Options& o) {
  const std::vector<std::string> kinds = connections(o);
  apps::check_memory({.vocab = o.vocab,
                      .context = o.context,
                      .channels = o.channels,
                      .layers = o.layers,
                      .batch = o.batch,
                      .streams = kinds.back() == "residual" ? 1 : streams(o, kinds.back())});
  std::vector<std::unique_ptr<Run>> runs;
  for (const std::string& connection : kinds) runs.push_back(std::make_unique<Run>(o, connection));
  std::int64_t allocations = 0;
  for (int step = 0; step < o.steps + kWarmUp; ++step) {
    for (const auto& run : runs) o.hvp ? run->product() : run->step();
    if (step == 0) allocations = memory_stats().system_allocations;
  }
  allocations = memory_stats().system_allocations - allocations;
  for (const auto& run : runs) print(o, *run, allocations, o.compare ? runs.front()->median_ms() : 0);
}

/// Prints the most memory that the process of one connection will have had, without its steps.
void plan(Options o) {
  o.keep_every = keep_every(o);  // of all layers
  const double held = apps::planned_bytes(o.layers, o.keep_every * o.depth_block, [&](std::int64_t layers) {
    o.layers = static_cast<int>(layers);
    Run run(o, o.connection);
    for (int step = 0; step < 2; ++step) o.hvp ? run.product() : run.step();
  });
  const double others = static_cast<double>(platform::peak_bytes()) - apps::held_bytes();
  fmt::print(R"({{"connection": "{}", "keep_every": {}, "planned_rss_mb": {:.0f}}})"
             "\n",
             o.connection, o.keep_every, (held + others) / (1 << 20));
}

/// Repeats the timed steps of one connection with a profile, op by op.
void profile(const Options& o) {
  Run run(o, o.connection);
  bench::machine();  // before the steps, and again after them
  for (int step = 0; step < kWarmUp; ++step) run.step();
  Profile profile;
  for (int step = 0; step < o.steps; ++step) run.step(&profile);
  const bench::Machine& machine = bench::machine_again();
  const double flops = machine.flops_of(o.dtype == "f64" ? DType::f64 : o.dtype == "bf16" ? DType::bf16 : DType::f32);
  fmt::print(stderr, "{}of the peak: {:.1f} GB/s copied, {:.0f} GFLOP/s\n", profile.table({machine.copy_bytes, flops}),
             machine.copy_bytes / 1e9, flops / 1e9);
  if (!o.trace.empty())
    write_file_atomically(o.trace, [&](std::ostream& file) { file << profile.chrome_trace() << "\n"; });
}

constexpr const char* kFields =
    "Fields of the JSON line: peer, the library that was timed; ms_per_step, the median of the steps; gflops, 1e9\n"
    "operations of matrix products, but for those of connections, per second of the step; peak_rss_mb, the most\n"
    "memory of the process; system_allocations_after_first_step, those that braid's cache of memory did not serve.\n"
    "--profile then times as many steps again, and its table has their means.";

void add_options(CLI::App& app, Options& o) {
  app.add_option("--connection", o.connection, "the kind by its name: residual, hc, mhc, single-pass, ..")
      ->capture_default_str();
  app.add_option("--mixing", o.mixing, "of mhc: the mixing, from logits to H_res: sinkhorn, newton, ..")
      ->capture_default_str();
  app.add_flag("--compare", o.compare, "residual, hc, mhc and single-pass in turn, with their ratio to residual");
  app.add_option("--path", o.path, "fused or reference: hyper-connections by fused kernels or in their composed forms")
      ->check(CLI::IsMember({"fused", "reference"}))
      ->capture_default_str();
  app.add_option("--dtype", o.dtype, "of parameters and activations: f32 or f64; or bf16, of activations")
      ->check(CLI::IsMember({"f32", "f64", "bf16"}))
      ->capture_default_str();
  apps::add_matmul_precision(app, o.matmul_precision);
  apps::add_bits(app, o.bits);
  app.add_option("--channels", o.channels)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--layers", o.layers)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--heads", o.heads)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--context", o.context)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--batch", o.batch)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--vocab", o.vocab)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--streams", o.streams, "those of the connection unless given: 4, of frac 1, of manifold 2")
      ->check(CLI::Range(1, 64));
  app.add_option("--keep-every", o.keep_every,
                 "keep the streams at every k-th sublayer, recompute the rest; 0: planned")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--depth-block", o.depth_block, "attention-residual: sublayers whose outputs make one source")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--profile", o.profile, "print a table of the ops: time, share, bytes, share of bandwidth and of peak");
  app.add_flag("--hvp", o.hvp, "time a product with the Hessian, after a gradient, instead of a step")
      ->excludes("--profile");
  app.add_option("--trace", o.trace, "write the ops of the steps in Chrome's trace format")->needs("--profile");
  app.add_flag("--plan", o.plan, "print the memory that the steps will take, from steps of few layers, and take none")
      ->excludes("--compare")
      ->excludes("--profile");
  app.add_option("--steps", o.steps, "timed steps; reports their median")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--threads", o.threads, "unless given, BRAID_NUM_THREADS or 2")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_main("train_step", [&] {
    Options o;
    CLI::App app("Times one training step of the reference transformer and prints one JSON line per connection.");
    app.footer(kFields);
    add_options(app, o);
    apps::parse_command_line(app, argc, argv);
    check_settings(o);
    if (!o.trace.empty()) apps::check_output_file("--trace", o.trace);
    std::optional<Composed> scope;
    if (o.path == "reference") scope.emplace(Composed::Ops::connections);
    set_num_threads(o.threads);
    set_matmul_precision(o.matmul_precision);
    const BitsScope bits(o.bits);
    if (o.plan) {
      plan(o);
      return 0;
    }
    measure(o);
    if (o.profile) profile(o);
    return 0;
  });
}

// One training step of the reference transformer: forward, backward, clipping, AdamW. Prints one JSON line.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

namespace {

using namespace braid;

struct Options {
  std::string connection = "residual";
  std::int64_t channels = 384, context = 256, batch = 8, vocab = 65;
  int layers = 6, heads = 6, streams = 4, steps = 10, threads = 2;
};

struct Measurement {
  double ms_per_step, loss;
  std::int64_t system_allocations;  // after the first step
};

template <class Model>
Measurement train(Model model, const Options& o, Rng& rng) {
  const Tensor tokens = randint(0, o.vocab, {o.batch, o.context}, rng);
  const Tensor targets = randint(0, o.vocab, {o.batch, o.context}, rng);
  auto gradients = value_and_grad([](const Model& m, const Tensor& x, const Tensor& y) { return m.loss(x, y); });
  nn::AdamW optimizer({.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1, .decays = nn::decay_everything});

  constexpr int kWarmUp = 2;
  std::vector<double> ms;
  std::int64_t allocations = 0;
  double last_loss = 0;
  for (int step = 0; step < o.steps + kWarmUp; ++step) {
    const auto start = std::chrono::steady_clock::now();
    auto [loss, grads] = gradients(model, tokens, targets);
    nn::clip_grad_norm(grads, 1.0);
    optimizer.step(model, grads);
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    if (step == 0) allocations = memory_stats().system_allocations;
    if (step >= kWarmUp) ms.push_back(elapsed.count());
    last_loss = loss;
  }
  std::ranges::nth_element(ms, ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2));
  return {ms[ms.size() / 2], last_loss, memory_stats().system_allocations - allocations};
}

/// Of the matrix products of a step, connections left out.
double flops_per_step(const Options& o) {
  const auto c = static_cast<double>(o.channels), t = static_cast<double>(o.context);
  const double weights = o.layers * 12 * c * c + static_cast<double>(o.vocab) * c;
  return static_cast<double>(o.batch) * t * (6 * weights + 6 * o.layers * c * t);
}

void print(const Options& o, const Measurement& m) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(R"({{"peer": "braid", "connection": "{}", "channels": {}, "layers": {}, "heads": {}, "context": {}, )"
             R"("batch": {}, "vocab": {}, "streams": {}, "steps": {}, "threads": {}, "dtype": "f32", )"
             R"("ms_per_step": {:.2f}, "tokens_per_s": {:.0f}, "gflops": {:.1f}, "loss": {:.4f}, "peak_rss_mb": {}, )"
             R"("system_allocations_after_first_step": {}}})"
             "\n",
             o.connection, o.channels, o.layers, o.heads, o.context, o.batch, o.vocab, o.streams, o.steps, o.threads,
             m.ms_per_step, 1e3 * static_cast<double>(o.batch * o.context) / m.ms_per_step,
             flops_per_step(o) / m.ms_per_step / 1e6, m.loss, usage.ru_maxrss / 1024, m.system_allocations);
}

Measurement run(const Options& o) {
  Rng rng(0);
  const nn::TransformerConfig config{
      .vocab = o.vocab, .context = o.context, .channels = o.channels, .layers = o.layers, .heads = o.heads};
  return train(nn::Transformer<>(config, rng), o, rng);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Times one training step of the reference transformer and prints one JSON line.");
  app.add_option("--connection", o.connection, "what connects the sublayers")
      ->check(CLI::IsMember({"residual"}))
      ->capture_default_str();
  app.add_option("--channels", o.channels)->capture_default_str();
  app.add_option("--layers", o.layers)->capture_default_str();
  app.add_option("--heads", o.heads)->capture_default_str();
  app.add_option("--context", o.context)->capture_default_str();
  app.add_option("--batch", o.batch)->capture_default_str();
  app.add_option("--vocab", o.vocab)->capture_default_str();
  app.add_option("--streams", o.streams)->capture_default_str();
  app.add_option("--steps", o.steps, "timed steps, of which the median counts")->capture_default_str();
  app.add_option("--threads", o.threads)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    check_value(o.steps >= 1 && o.batch >= 1, "--steps and --batch must be at least 1");
    set_num_threads(o.threads);
    print(o, run(o));
  } catch (const std::exception& e) {
    fmt::print(stderr, "train_step: {}\n", e.what());
    return 2;
  }
}

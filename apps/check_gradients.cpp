// Verifies every gradient of a whole transformer in f64, 11 million parameters by default; `--help` lists the flags.
#include <chrono>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/braid.h>

#include "common/connection_options.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/run_main.h"

namespace {

using namespace braid;
using Model = nn::Transformer<mhc::Connection>;

struct Options {
  apps::ConnectionOptions connection;
  std::int64_t layers = 6, channels = 384, heads = 6, context = 16, batch = 2, vocab = 65;
  GradcheckOptions checks = {.max_elements = 4, .directions = 2};
  std::uint64_t seed = 1;
  int threads = 0;
};

Options parse(int argc, char** argv) {
  Options o;
  o.connection.kind = "mhc";
  CLI::App app("Compares the gradients of a transformer with finite differences, parameter by parameter, in f64.");
  app.add_option("--connection", o.connection.kind, "kind of connection: residual, hc, mhc, ..")->capture_default_str();
  apps::add_connection_flags(app, o.connection);
  app.add_option("--layers", o.layers)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--channels", o.channels)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--heads", o.heads)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--context", o.context)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--batch", o.batch)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--vocab", o.vocab)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--tolerance", o.checks.tolerance, "largest relative error of a right derivative")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--directions", o.checks.directions, "random directions for each large parameter")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "seed of weights, tokens and directions")->capture_default_str();
  app.add_option("--threads", o.threads, "threads (0: all cores)")->check(CLI::Range(0, 1024))->capture_default_str();
  apps::parse_command_line(app, argc, argv);
  apps::check_all_apply(o.connection, std::span(&o.connection.kind, 1));
  o.checks.seed = o.seed;
  return o;
}

Model make_model(const Options& o, Rng& rng) {
  apps::check_memory({.vocab = o.vocab,
                      .context = o.context,
                      .channels = o.channels,
                      .layers = o.layers,
                      .batch = o.batch,
                      .streams = o.connection.streams.value_or(1),
                      .bytes = 8});
  const nn::TransformerConfig sizes{.vocab = o.vocab,
                                    .context = o.context,
                                    .channels = o.channels,
                                    .layers = static_cast<int>(o.layers),
                                    .heads = static_cast<int>(o.heads),
                                    .dtype = DType::f64};
  mhc::ConnectionConfig connection = apps::connection_config(o.connection);
  connection.dtype = DType::f64;
  connection.sublayers = 2 * o.layers;
  return Model(sizes, rng, [&](int index) { return mhc::Connection(connection, o.channels, index, rng); });
}

int run(Options o) {
  if (o.threads > 0) set_num_threads(o.threads);
  Rng rng(o.seed);
  const Model model = make_model(o, rng);
  const Tensor tokens = randint(0, o.vocab, {o.batch, o.context}, rng),
               targets = randint(0, o.vocab, {o.batch, o.context}, rng);
  fmt::print("{} parameters, {} tokens\n", num_params(model), tokens.numel());

  std::optional<apps::Progress> progress;
  o.checks.progress = [&](std::int64_t done, std::int64_t total) {
    if (!progress) progress.emplace("derivative", total);
    progress->update(done, "");
  };
  const auto start = std::chrono::steady_clock::now();
  const GradcheckResult result = gradcheck_module(
      model, [&](const Model& m) { return m.loss(tokens, targets); }, o.checks);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (progress) progress->finish();

  fmt::print("{}{}", result.table(), result.ok ? "" : result.message + "\n");
  fmt::print("{} derivatives: {} wrong, {} undecidable, {} at kinks; worst relative error {:.1e}; {}\n",
             result.derivatives, result.wrong, result.undecidable, result.kinks, result.worst,
             apps::human_duration(elapsed.count()));
  return result.ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_main("check_gradients", [&] { return run(parse(argc, argv)); });
}

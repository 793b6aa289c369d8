#include "config.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <braid/core/error.h>

#include "../common/run_info.h"

namespace braid::train_lm {
namespace {

void add_options(CLI::App& app, Config& c) {
  app.option_defaults()->take_last();
  app.add_option("--text", c.text, "text file to learn (default: the system's licence texts)");
  app.add_option("--connection", c.connection, "what joins a sublayer to the stream")
      ->check(CLI::IsMember({"residual", "manifold"}))
      ->capture_default_str();
  const auto count = [&app](const char* flag, std::int64_t& value, const char* help, std::int64_t least = 1) {
    app.add_option(flag, value, help)->check(CLI::Range(least, std::int64_t{1} << 40))->capture_default_str();
  };
  const auto number = [&app](const char* flag, double& value, const char* help) {
    app.add_option(flag, value, help)->check(CLI::NonNegativeNumber)->capture_default_str();
  };
  count("--layers", c.layers, "transformer blocks");
  count("--channels", c.channels, "channels of the residual stream");
  count("--heads", c.heads, "attention heads; must divide channels");
  count("--context", c.context, "characters that the model sees");
  count("--batch", c.batch, "windows of text a step");
  count("--steps", c.steps, "training steps");
  app.add_option("--warmup", c.warmup, "steps until the learning rate is reached (default: a twentieth of --steps)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  number("--lr", c.lr, "learning rate, decays by a cosine to --min-lr");
  number("--min-lr", c.min_lr, "learning rate at the end");
  number("--weight-decay", c.weight_decay, "of matrices");
  number("--clip", c.clip, "largest norm of the gradient");
  app.add_option("--seed", c.seed, "of initialisation, batches and sample")->capture_default_str();
  app.add_option("--threads", c.threads, "threads (0: all cores); results do not depend on them")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  count("--eval-every", c.eval_every, "steps between evaluations on the held-out tenth");
  count("--checkpoint-every", c.checkpoint_every, "steps between checkpoints");
  app.add_option("--out", c.out, "results folder (default: runs/CONNECTION-TIME)");
  app.add_flag("--resume", c.resume, "continue the run in --out from its checkpoint, bit for bit");
  count("--sample", c.sample, "characters to generate at the end", 0);
}

}  // namespace

Config parse(int argc, char** argv) {
  Config config;
  CLI::App app(
      "Trains a small transformer on the characters of a text; writes config.json, metrics.jsonl, loss.png and "
      "checkpoint.safetensors into --out and prints a sample.");
  add_options(app, config);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "train_lm: {}\n", error.what());
    std::exit(2);
  }
  check_value(!config.resume || !config.out.empty(), "--resume: give the run's folder with --out");
  if (config.warmup < 0) config.warmup = config.steps / 20;
  check_value(config.warmup <= config.steps, "--warmup: {} steps are more than --steps {}", config.warmup,
              config.steps);
  check_value(config.min_lr <= config.lr, "--min-lr: {} exceeds --lr {}", config.min_lr, config.lr);
  check_value(config.channels % config.heads == 0, "--heads: {} heads do not divide {} channels", config.heads,
              config.channels);
  if (config.out.empty()) config.out = "runs/" + config.connection + "-" + examples::time_stamp();
  return config;
}

nlohmann::ordered_json to_json(const Config& c) {
  return {{"text", c.text},
          {"connection", c.connection},
          {"layers", c.layers},
          {"channels", c.channels},
          {"heads", c.heads},
          {"context", c.context},
          {"batch", c.batch},
          {"steps", c.steps},
          {"warmup", c.warmup},
          {"lr", c.lr},
          {"min_lr", c.min_lr},
          {"weight_decay", c.weight_decay},
          {"clip", c.clip},
          {"seed", c.seed},
          {"eval_every", c.eval_every}};
}

void check_same_run(const nlohmann::json& earlier, const Config& config) {
  const nlohmann::json now = to_json(config);
  for (const auto& [key, value] : now.items()) {
    // The text is compared by its characters.
    if (key == "text" || key == "steps" || key == "warmup" || key == "eval_every") continue;
    check_value(earlier.contains(key) && earlier[key] == value,
                "--resume: the run was started with {} {} but now has {}", key,
                earlier.value(key, nlohmann::json()).dump(), value.dump());
  }
}

}  // namespace braid::train_lm

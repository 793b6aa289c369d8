#include "config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <braid/core/error.h>

#include "../common/run_folder.h"
#include "../common/run_info.h"
#include "../common/run_main.h"

namespace braid::train_lm {
namespace {

/// On resumption; text and tokenizer are compared by what they hold.
constexpr std::array<std::string_view, 7> kMayChange = {"text",       "tokenizer",       "steps",          "warmup",
                                                        "eval_every", "telemetry_every", "check_gradients"};

/// Of anything that is counted: products of two and their bytes stay below 2^63.
constexpr std::int64_t kMost = std::int64_t{1} << 24;

void add_count(CLI::App& app, const char* flag, std::int64_t& value, const char* help, std::int64_t least = 1) {
  app.add_option(flag, value, help)->check(CLI::Range(least, kMost))->capture_default_str();
}

void add_training_flags(CLI::App& app, examples::TrainerSettings& t) {
  // Up to what f32 holds, with room for products.
  const auto number = [&app](const char* flag, double& value, const char* help, double least = 0) {
    app.add_option(flag, value, help)->check(CLI::Range(least, 1e30))->capture_default_str();
  };
  add_count(app, "--layers", t.layers, "transformer blocks");
  add_count(app, "--channels", t.channels, "channels of the residual stream");
  add_count(app, "--heads", t.heads, "attention heads; must divide channels");
  add_count(app, "--context", t.context, "characters or tokens that the model sees");
  add_count(app, "--batch", t.batch, "windows of text a step");
  add_count(app, "--steps", t.steps, "training steps");
  app.add_option("--warmup", t.warmup, "steps until the learning rate is reached (default: a twentieth of --steps)")
      ->check(CLI::Range(std::int64_t{0}, kMost));
  number("--lr", t.lr, "learning rate, decays by a cosine to --min-lr");
  number("--min-lr", t.min_lr, "learning rate at the end");
  number("--weight-decay", t.weight_decay, "of matrices");
  number("--clip", t.clip, "largest norm of the gradient", 1e-30);
  app.add_option("--seed", t.seed, "of initialization, batches and sample")->capture_default_str();
}

void add_flags(CLI::App& app, Config& c) {
  app.option_defaults()->take_last();
  app.add_option(
      "--text", c.text,
      "text file to learn (default: the system's license texts), or a .bin of token ids as nanoGPT and llm.c "
      "write them");
  app.add_option("--tokenizer", c.tokenizer, "tokenizer.json: learn its tokens instead of characters");
  app.add_option("--connection", c.training.connection.kind,
                 "what joins a sublayer to the stream: residual, hc, mhc, manifold, mhc-layer, skip, deepseek-v4, "
                 "hunyuan-v4, gated or "
                 "single-pass")
      ->capture_default_str();
  examples::add_connection_flags(app, c.training.connection);
  add_training_flags(app, c.training);
  app.add_option("--threads", c.threads, "threads (0: all cores); results do not depend on them")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  add_count(app, "--eval-every", c.eval_every, "steps between evaluations on the held-out tenth");
  add_count(app, "--checkpoint-every", c.checkpoint_every, "steps between checkpoints");
  add_count(app, "--telemetry-every", c.telemetry_every, "steps between lines in telemetry.jsonl (0: none)", 0);
  add_count(app, "--check-gradients", c.check_gradients,
            "steps between comparisons of the f32 gradients with f64, printed and in gradients.jsonl (0: none)", 0);
  app.add_option("--out", c.out, "results folder (default: runs/CONNECTION-TIME)");
  app.add_flag("--resume", c.resume, "continue the run in --out from its checkpoint, bit for bit");
  add_count(app, "--sample", c.sample, "characters or tokens to generate at the end", 0);
  app.add_option_function<std::string>(
         "--on-nonfinite", [&c](const std::string& choice) { c.skip_nonfinite = choice == "skip"; },
         "at a loss or gradient that is not finite: stop (default), or skip the step")
      ->check(CLI::IsMember({"stop", "skip"}));
  app.add_flag("--allow-nonfinite", c.allow_nonfinite, "resume and save weights that are not finite");
  app.add_flag("--allow-other-processor", c.allow_other_processor,
               "resume although this processor has another instruction set, which rounds differently");
}

void check_settings(const examples::TrainerSettings& t) {
  check_value(t.warmup <= t.steps, "--warmup: {} steps are more than --steps {}", t.warmup, t.steps);
  check_value(t.min_lr <= t.lr, "--min-lr: {} exceeds --lr {}", t.min_lr, t.lr);
  check_value(t.channels % t.heads == 0, "--heads: {} heads do not divide {} channels", t.heads, t.channels);
  examples::connection_config(t.connection);
}

}  // namespace

Config parse(int argc, char** argv) {
  constexpr std::int64_t kUnset = -1;
  Config config;
  examples::TrainerSettings& training = config.training;
  training.warmup = kUnset;
  CLI::App app(
      "Trains a small transformer on the characters or tokens of a text; writes config.json, metrics.jsonl, loss.png "
      "and "
      "checkpoint.safetensors into --out and prints a sample.");
  add_flags(app, config);
  examples::parse_command_line(app, argc, argv);
  check_value(!config.resume || !config.out.empty(), "--resume: give the run's folder with --out");
  if (training.warmup == kUnset) training.warmup = training.steps / 20;
  check_settings(training);
  if (config.out.empty()) config.out = "runs/" + training.connection.kind + "-" + examples::time_stamp();
  examples::check_utf8("--text", config.text);
  examples::check_utf8("--tokenizer", config.tokenizer);
  examples::check_results_folder(config.out);
  return config;
}

nlohmann::ordered_json to_json(const Config& c) {
  const examples::TrainerSettings& t = c.training;
  nlohmann::ordered_json json{{"text", c.text}, {"tokenizer", c.tokenizer}};
  json.update(examples::to_json(t.connection));
  json.update({{"layers", t.layers},
               {"channels", t.channels},
               {"heads", t.heads},
               {"context", t.context},
               {"batch", t.batch},
               {"steps", t.steps},
               {"warmup", t.warmup},
               {"lr", t.lr},
               {"min_lr", t.min_lr},
               {"weight_decay", t.weight_decay},
               {"clip", t.clip},
               {"seed", t.seed},
               {"eval_every", c.eval_every},
               {"telemetry_every", c.telemetry_every},
               {"check_gradients", c.check_gradients}});
  return json;
}

void check_same_settings(const nlohmann::json& earlier, const Config& config) {
  const nlohmann::json now = to_json(config);
  for (const auto& [key, value] : now.items()) {
    if (std::ranges::count(kMayChange, key) > 0) continue;
    check_value(earlier.contains(key) && earlier[key] == value,
                "--resume: the run was started with {} {} but now has {}", key,
                earlier.value(key, nlohmann::json()).dump().substr(0, 80), value.dump());
  }
}

}  // namespace braid::train_lm

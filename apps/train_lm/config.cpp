#include "config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <braid/core/error.h>
#include <braid/core/utf8.h>
#include <braid/nn/pretrained/config.h>

#include "../common/run_folder.h"
#include "../common/run_info.h"
#include "../common/run_main.h"

namespace braid::train_lm {
namespace {

/// Settings that a resumed run may change; text and tokenizer are compared by their content.
constexpr std::array<std::string_view, 8> kMayChange = {
    "text", "tokenizer", "steps", "warmup", "eval_every", "telemetry_every", "check_gradients", "keep_every"};

/// The largest count: products of two counts, in bytes, stay below 2^63.
constexpr std::int64_t kMost = std::int64_t{1} << 24;

void add_count(CLI::App& app, const char* flag, std::int64_t& value, const char* help, std::int64_t least = 1) {
  app.add_option(flag, value, help)->check(CLI::Range(least, kMost))->capture_default_str();
}

void add_training_flags(CLI::App& app, apps::TrainerSettings& t) {
  // The largest numbers whose products f32 can hold.
  const auto number = [&app](const char* flag, double& value, const char* help, double least = 0) {
    app.add_option(flag, value, help)->check(CLI::Range(least, 1e30))->capture_default_str();
  };
  app.add_option_function<std::string>(
         "--dtype", [&t](const std::string& name) { t.dtype = name == "bf16" ? DType::bf16 : DType::f32; },
         "of activations and products: f32 (default) or bf16; parameters, moments, maps and losses are f32")
      ->check(CLI::IsMember({"f32", "bf16"}));
  apps::add_matmul_precision(app, t.matmul_precision);
  apps::add_bits(app, t.bits);
  add_count(app, "--layers", t.layers, "transformer blocks");
  add_count(app, "--channels", t.channels, "channels of the residual stream");
  add_count(app, "--heads", t.heads, "attention heads; must divide channels");
  add_count(app, "--experts", t.experts, "MLPs of which a router chooses for each token, in place of one (0: none)", 0);
  add_count(app, "--experts-per-token", t.experts_per_token, "how many it chooses");
  app.add_flag("--value-residual", t.value_residual,
               "attentions but the first mix the values of the first into theirs, with learned weights");
  add_count(app, "--lora", t.lora,
            "train changes of this rank of all linear maps, with --train connections the connections as well, and "
            "nothing else (0: none)",
            0);
  app.add_option("--optimizer", t.optimizer,
                 "adamw, muon (matrices by Newton-Schulz, the rest by adamw), lion or adafactor")
      ->check(CLI::IsMember(std::vector<std::string>(apps::optimizer_names().begin(), apps::optimizer_names().end())))
      ->capture_default_str();
  add_count(app, "--context", t.context, "characters or tokens that the model sees");
  add_count(app, "--batch", t.batch, "windows of text per step");
  add_count(app, "--blocks", t.blocks,
            "equal blocks of the batch whose gradients are computed one by one, in less memory; must divide it");
  add_count(app, "--steps", t.steps, "training steps; 0 with --init: the held-out loss at its start", 0);
  app.add_option("--warmup", t.warmup, "steps until the learning rate is reached (default: a twentieth of --steps)")
      ->check(CLI::Range(std::int64_t{0}, kMost));
  number("--lr", t.lr, "learning rate, decays by a cosine to --min-lr; adafactor learns better at 0.01");
  number("--min-lr", t.min_lr, "learning rate at the end");
  number("--weight-decay", t.weight_decay, "weight decay of matrices");
  number("--clip", t.clip, "largest norm of the gradient", 1e-30);
  app.add_option("--seed", t.seed, "seed of initialization, batches and sample")->capture_default_str();
}

void add_patience(CLI::App& app, std::int64_t& seconds) {
  add_count(app, "--patience", seconds,
            "seconds that a rank may be silent, because its process was stopped or its machine hangs, before all end");
}

void add_flags(CLI::App& app, Config& c) {
  app.add_option(
      "--init", c.init,
      "start from the model in another run's folder, in a checkpoint of one, or in the folder of a pretrained GPT-2, "
      "Llama, Qwen3, Mistral, Mixtral, Qwen3-MoE or Gemma 2, put into the connections of --connection, which are the "
      "run's own by default: with the same connection and mixing it keeps its maps, others start anew, with --alpha 0 "
      "unless given; or of a DeepSeek-V4, which has its own; sizes, tokenizer and, unless given, the text of a run are "
      "the "
      "model's, but the context of a pretrained one is --context");
  app.add_option_function<std::string>(
         "--train",
         [&c](const std::string& choice) {
           c.training.trained = choice == "all" ? apps::Trained::all : apps::Trained::connections;
         },
         "parameters to train: all (default) or connections")
      ->check(CLI::IsMember({"all", "connections"}));
  app.add_option(
      "--text", c.text,
      "text file to learn (default: the system's license texts), or a .bin of token ids as nanoGPT and llm.c "
      "write them");
  app.add_option("--tokenizer", c.tokenizer, "tokenizer.json: learn its tokens instead of characters");
  app.add_option("--connection", c.training.connection.kind,
                 "how a sublayer is connected to the residual stream: residual, hc, mhc, manifold, mhc-layer, skip, "
                 "deepseek-v4, hunyuan-v4, gated, single-pass, attention-residual, frac, layer-scale, rezero or laurel")
      ->capture_default_str();
  apps::add_connection_flags(app, c.training.connection);
  add_training_flags(app, c.training);
  app.add_option("--threads", c.threads, "threads (0: all cores); results do not depend on them")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  add_patience(app, c.patience);
  add_count(app, "--eval-every", c.eval_every, "steps between evaluations on the held-out tenth");
  add_count(app, "--checkpoint-every", c.checkpoint_every, "steps between checkpoints");
  add_count(app, "--telemetry-every", c.telemetry_every, "steps between lines in telemetry.jsonl (0: none)", 0);
  add_count(app, "--check-gradients", c.check_gradients,
            "steps between comparisons of the f32 gradients with f64, printed and in gradients.jsonl (0: none)", 0);
  app.add_flag("--ledger", c.ledger,
               "write checksums of loss, gradients and parameters of every step, for ./dev same and ./dev part");
  app.add_flag("--tensorboard", c.tensorboard, "write losses, norm, rate and speed as events for TensorBoard");
  app.add_flag("--report", c.report,
               "write report.html at evaluations, with samples and, unless --telemetry-every is given, telemetry; a "
               "browser that has it open follows the run");
  app.add_option("--out", c.out, "results folder (default: runs/CONNECTION-TIME)");
  app.add_flag("--resume", c.resume, "continue the run in --out from its checkpoint, bit for bit");
  add_count(app, "--sample", c.sample, "characters or tokens to generate at the end, at the temperature 0.8", 0);
  app.add_option_function<std::string>(
         "--on-nonfinite", [&c](const std::string& choice) { c.skip_nonfinite = choice == "skip"; },
         "at a loss or gradient that is not finite: stop (default), or skip the step")
      ->check(CLI::IsMember({"stop", "skip"}));
  app.add_flag("--allow-nonfinite", c.allow_nonfinite, "resume and save weights that are not finite");
  app.add_flag("--allow-other-processor", c.allow_other_processor,
               "resume although another instruction set is in use, which rounds differently");
}

/// Takes the sizes and the tokenizer of the model in `folder`, which the run starts from.
void start_from(const std::filesystem::path& folder, Config& c, const CLI::App& app) {
  const apps::TrainerSettings& theirs = c.origin->training;
  c.training.architecture = theirs.architecture;
  const auto adopt = [&](const char* flag, std::int64_t& mine, std::int64_t its) {
    check_value(app.count(flag) == 0 || mine == its, "{}: the model of --init has {} but the command line says {}",
                flag, its, mine);
    mine = its;
  };
  adopt("--layers", c.training.layers, theirs.layers);
  adopt("--channels", c.training.channels, theirs.channels);
  adopt("--heads", c.training.heads, theirs.heads);
  if (!theirs.architecture) adopt("--experts", c.training.experts, theirs.experts);
  if (theirs.experts > 0) adopt("--experts-per-token", c.training.experts_per_token, theirs.experts_per_token);
  if (theirs.lora > 0) adopt("--lora", c.training.lora, theirs.lora);
  if (!theirs.architecture) adopt("--context", c.training.context, theirs.context);
  check_value(app.count("--value-residual") == 0 || theirs.value_residual,
              "--value-residual: the model of --init has none");
  c.training.value_residual = theirs.value_residual;
  const std::filesystem::path tokenizer = folder_of(folder) / "tokenizer.json";
  if (app.count("--tokenizer") == 0 && std::filesystem::exists(tokenizer)) c.tokenizer = tokenizer.string();
  if (app.count("--text") == 0 && !c.resume) c.text = c.origin->text;
  for (const char* flag : {"--alpha", "--phi-std", "--scale-init", "--skip-init"})
    if (app.count(flag) > 0) c.initial_flags.insert(flag);
  if (!c.initial_flags.contains("--alpha")) c.training.connection.alpha = 0;
  if (!theirs.architecture || !theirs.architecture->streams) return;
  CLI::App flags;
  add_connection_flags(flags, c.training.connection);
  flags.add_option("--connection");
  for (const CLI::Option* flag : flags.get_options())
    check_value(app.count(flag->get_name()) == 0, "{}: the model of --init has hyper-connections of its own",
                flag->get_name());
  c.training.connection = theirs.connection;
}

void check_settings(const apps::TrainerSettings& t) {
  check_value(t.warmup <= t.steps, "--warmup: {} steps are more than --steps {}", t.warmup, t.steps);
  check_value(t.min_lr <= t.lr, "--min-lr: {} exceeds --lr {}", t.min_lr, t.lr);
  check_value(t.architecture || t.channels % t.heads == 0, "--heads: {} heads do not divide {} channels", t.heads,
              t.channels);
  check_value(t.batch % t.blocks == 0, "--blocks: {} blocks do not divide a --batch of {}", t.blocks, t.batch);
  check_value(t.bits == Bits::fast || t.matmul_precision == MatmulPrecision::highest,
              "--matmul-precision: portable bits need highest but it is {}", name(t.matmul_precision));
  check_value(t.experts == 0 || !t.architecture, "--experts: a pretrained model has the MLPs or experts that it has");
  check_value(t.experts == 0 || t.experts_per_token <= t.experts, "--experts-per-token: {} are more than --experts {}",
              t.experts_per_token, t.experts);
  check_value(t.experts > 0 || t.experts_per_token == apps::TrainerSettings().experts_per_token,
              "--experts-per-token: has no effect without --experts");
  check_value(t.trained == apps::Trained::all || t.connection.kind != "residual",
              "--train: residual connections have no parameters to train");
  apps::connection_config(t.connection);
}

/// An argument as a shell reads it.
std::string quoted(const std::string& argument) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-+=:,./@%").find(c) != std::string_view::npos;
  };
  if (!argument.empty() && std::ranges::all_of(argument, is_plain)) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_to_resume(const CLI::App& app, const Config& config, std::span<char* const> arguments) {
  std::vector<std::string> words;
  for (const char* argument : arguments) words.push_back(quoted(argument));
  if (!config.resume) words.emplace_back("--resume");
  if (app.count("--out") == 0) words.insert(words.end(), {"--out", quoted(config.out.string())});
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

Config parse(int argc, char** argv) {
  constexpr std::int64_t kUnset = -1;
  Config config;
  apps::TrainerSettings& training = config.training;
  training.warmup = kUnset;
  CLI::App app(
      "Trains a small transformer on the characters or tokens of a text; writes config.json, metrics.jsonl, loss.png "
      "and "
      "checkpoint.safetensors into --out and prints a sample.");
  add_flags(app, config);
  apps::parse_command_line(app, argc, argv);
  check_value(!config.resume || !config.out.empty(), "--resume: give the run's folder with --out");
  // A resumed run has sizes, tokenizer and connections itself.
  const std::filesystem::path origin = config.resume && has_checkpoint(config.out) ? config.out : config.init;
  if (!config.init.empty()) config.origin = std::make_shared<SavedRun>(load_origin(origin));
  if (config.origin && !config.origin->pretrained && app.count("--connection") == 0) {
    training.connection = config.origin->training.connection;
    apps::parse_command_line(app, argc, argv);  // its other flags change what the model has
  }
  apps::check_all_apply(training.connection, std::span(&training.connection.kind, 1));
  if (config.report && app.count("--telemetry-every") == 0) config.telemetry_every = config.eval_every;
  if (training.warmup == kUnset) training.warmup = training.steps / 20;
  check_value(training.steps > 0 || !config.init.empty(), "--steps: must be at least 1 without --init but is 0");
  if (config.origin) start_from(origin, config, app);
  check_settings(training);
  check_value(config.check_gradients == 0 || training.dtype == DType::f32,
              "--check-gradients: compares gradients of f32 with f64 op by op; --dtype bf16 has other ops");
  if (config.out.empty()) config.out = "runs/" + training.connection.kind + "-" + apps::time_stamp();
  apps::check_utf8("--text", config.text);
  apps::check_utf8("--tokenizer", config.tokenizer);
  apps::check_utf8("--init", config.init.string());
  apps::check_results_folder(config.out);
  config.command_to_resume = command_to_resume(app, config, {argv, static_cast<std::size_t>(argc)});
  return config;
}

std::chrono::seconds patience(int argc, char** argv) {
  Config config;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.option_defaults()->take_last();
  add_patience(app, config.patience);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError&) {  // parse() reports it
  }
  return std::chrono::seconds(config.patience);
}

nlohmann::ordered_json to_json(const Config& c) {
  const apps::TrainerSettings& t = c.training;
  nlohmann::ordered_json json{{"text", c.text}, {"tokenizer", c.tokenizer}, {"init", c.init.string()}};
  json.update(apps::to_json(t.connection));
  json.update({{"layers", t.layers},
               {"channels", t.channels},
               {"heads", t.heads},
               {"context", t.context},
               {"experts", t.experts},
               {"experts_per_token", t.experts_per_token},
               {"lora", t.lora},
               {"value_residual", t.value_residual},
               {"optimizer", t.optimizer},
               {"batch", t.batch},
               {"blocks", t.blocks},
               {"steps", t.steps},
               {"warmup", t.warmup},
               {"lr", t.lr},
               {"min_lr", t.min_lr},
               {"weight_decay", t.weight_decay},
               {"clip", t.clip},
               {"seed", t.seed},
               {"dtype", std::string(name(t.dtype))},
               {"matmul_precision", std::string(name(t.matmul_precision))},
               {"bits", std::string(name(t.bits))},
               {"train", t.trained == apps::Trained::all ? "all" : "connections"},
               {"eval_every", c.eval_every},
               {"telemetry_every", c.telemetry_every},
               {"check_gradients", c.check_gradients}});
  if (t.architecture)
    json["architecture"] = nlohmann::ordered_json::parse(nn::format_pretrained_config(*t.architecture, DType::f32));
  return json;
}

std::vector<std::string> changed_settings(const nlohmann::json& earlier, const Config& config) {
  Config plain;  // defaults of settings that an older run does not have
  plain.training.connection.kind = config.training.connection.kind;
  const nlohmann::json now = to_json(config), usual = to_json(plain);
  std::vector<std::string> changed;
  for (const auto& [key, value] : now.items()) {
    if (std::ranges::count(kMayChange, key) > 0) continue;
    const nlohmann::json before = earlier.value(key, usual.value(key, nlohmann::json()));
    if (before != value)
      changed.push_back(fmt::format("{} {} but now has {}", key, shortened(before.dump()), shortened(value.dump())));
  }
  return changed;
}

}  // namespace braid::train_lm

// Continues a text with a model of Hugging Face or a run of train_lm. `generate --help` lists the flags.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <braid/core/parallel.h>

#include "../common/progress.h"
#include "../common/run_main.h"
#include "../common/utf8_stream.h"
#include "generation.h"
#include "language_model.h"
#include "stop_text.h"

namespace braid::generate {
namespace {

struct Options {
  std::string model, run, prompt, stop, dtype;
  GenerationSettings generation;
  int threads = 0;
};

Options parse(int argc, char** argv) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  Options o;
  GenerationSettings& g = o.generation;
  CLI::App app("Continues a text: writes what follows the prompt on stdout, token by token, and its speed to stderr.");
  app.add_option(
      "--model", o.model,
      "folder of a GPT-2, Llama, Qwen3, Mistral, Mixtral, Qwen3-MoE, Gemma 2 or DeepSeek-V4 as Hugging Face saves it, "
      "with its tokenizer.json");
  app.add_option("--run", o.run, "results folder of train_lm, or a checkpoint in it (else the newest)");
  app.add_option("--prompt", o.prompt,
                 "text to continue, of any length, or ids of a model without a tokenizer (default: starts a new text)");
  app.add_option("--tokens", g.tokens, "largest number of tokens or characters to write, also beyond the context")
      ->check(CLI::Range(std::int64_t{1}, kMost))
      ->capture_default_str();
  app.add_option(
         "--temperature", g.sampling.temperature,
         "divisor of the logits; 1 draws as the model predicts, the samples of train_lm are less random, at 0.8")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  app.add_option("--top-k", g.sampling.top_k, "draw among this many of the most likely tokens (0: all)")
      ->check(CLI::Range(std::int64_t{0}, kMost))
      ->capture_default_str();
  app.add_option("--top-p", g.sampling.top_p,
                 "draw among the fewest most likely tokens whose probabilities add up to this")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  app.add_option("--seed", g.seed, "seed of the random draws")->capture_default_str();
  app.add_flag("--greedy", g.greedy, "always the most likely token");
  app.add_option("--stop", o.stop, "text that ends the output; it is not written");
  app.add_flag_callback(
      "--no-cache", [&g] { g.cache = false; }, "read all tokens again for each one: slower, the same bits");
  app.add_option(
         "--overlap", g.overlap,
         "share of the context, its last tokens, that is read again when it is full; of a longer prompt the start is "
         "not read (default: 0.5; with rotary positions and no compressed attention, the context slides instead)")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option(
         "--dtype", o.dtype,
         "f32, or bf16 for activations and weights, in about half the memory (default: the run's, f32 of --model)")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", o.threads, "threads (0: all cores); results do not depend on them")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  apps::parse_command_line(app, argc, argv);
  check_value(o.model.empty() != o.run.empty(), "--model, --run: give one of them");
  check_value(!o.stop.empty() || app.count("--stop") == 0, "--stop: must not be empty");
  for (const auto& [option, text] : {std::pair("--prompt", &o.prompt), {"--stop", &o.stop}})
    apps::check_utf8(option, *text);
  return o;
}

/// The ids of the prompt, or the id that begins a text.
std::vector<std::int32_t> read_prompt(const apps::Vocabulary& vocabulary, const std::string& prompt) {
  std::vector<std::int32_t> ids;
  if (!prompt.empty()) ids = vocabulary.encode(prompt, "--prompt", /*add_special_tokens=*/true);
  if (ids.empty()) ids.push_back(vocabulary.start());
  return ids;
}

double rate(std::int64_t count, double seconds) { return static_cast<double>(count) / seconds; }

/// Says how a text was read that is longer than the context.
void report_context(const Generated& g, std::int64_t context, std::int64_t again) {
  if (g.unread + g.read + g.written - 1 <= context) return;
  fmt::print(stderr, "the text is longer than the context of {}: ", context);
  if (again == 0) fmt::print(stderr, "each token attended to at most the last {}", context);
  if (again > 0) fmt::print(stderr, "whenever it was full, the last {} were read again (--overlap)", again);
  if (g.unread > 0) fmt::print(stderr, "; the first {} of the prompt were not read", g.unread);
  fmt::print(stderr, "\n");
}

void report(const Generated& g, const LanguageModel& language, std::optional<double> overlap) {
  const nn::TransformerConfig& config = language.model.config;
  report_context(g, config.context, tokens_read_again(config, overlap));
  fmt::print(stderr, "{} read: {} at {:.1f}/s; written: {} at {:.1f}/s\n", language.vocabulary.unit(), g.read,
             rate(g.read, g.seconds_reading), g.written, rate(g.written - 1, g.seconds_writing));
}

LanguageModel load(const Options& o) {
  LanguageModel language = o.run.empty() ? load_model(o.model) : load_run(o.run);
  DType& dtype = language.model.config.dtype;
  if (!o.dtype.empty()) dtype = o.dtype == "bf16" ? DType::bf16 : DType::f32;
  if (dtype == DType::bf16) language.model = language.model.in_bf16();
  return language;
}

int run(const Options& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  const LanguageModel language = load(o);
  apps::UTF8Stream characters;
  StopText stop(o.stop);
  const Generated result =
      generate(language, read_prompt(language.vocabulary, o.prompt), o.generation, [&](std::int32_t id) {
        apps::say("{}", stop.push(characters.push(language.vocabulary.decode({&id, 1}))));
        return !stop.reached();
      });
  const std::string last = stop.push(characters.finish());
  apps::say("{}{}\n", last, stop.finish());
  report(result, language, o.generation.overlap);
  return 0;
}

}  // namespace
}  // namespace braid::generate

int main(int argc, char** argv) {
  using namespace braid::generate;
  return braid::apps::run_main("generate", [&] { return run(parse(argc, argv)); });
}

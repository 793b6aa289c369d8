// Trains a small transformer on characters or tokens. `train_lm --help` lists the flags.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <braid/core/files/atomic_file.h>
#include <braid/core/files/checksum.h>
#include <braid/core/parallel.h>
#include <braid/core/platform/process.h>
#include <braid/core/products/gemm.h>
#include <braid/nn/summary.h>
#include <braid/nn/tensorboard.h>

#include "../common/json_lines.h"
#include "../common/over_ranks.h"
#include "../common/progress.h"
#include "../common/read_file.h"
#include "../common/run_folder.h"
#include "../common/run_info.h"
#include "../common/run_main.h"
#include "../common/trainer.h"
#include "../platform/memory.h"
#include "../platform/signals.h"
#include "../platform/standard_streams.h"
#include "checkpoint.h"
#include "config.h"
#include "folder.h"
#include "interruption.h"
#include "lines.h"
#include "sample.h"
#include "starts.h"
#include "upcycling.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;
using apps::Corpus;
using apps::Trainer;
using Json = nlohmann::ordered_json;

void check_folder(const Config& config, const Folder& folder) {
  const bool holds_run = fs::exists(folder.config()) || has_checkpoint(folder.path);
  check<FileError>(holds_run || !config.resume, "--resume: {} holds no run", folder.path.string());
  check_value(!holds_run || config.resume, "--out: {} holds a run; continue it with --resume or name another folder",
              folder.path.string());
  check_value(holds_run || !fs::exists(folder.metrics()), "--out: {} holds other results; name another folder",
              folder.path.string());
}

/// Restores the trainer from the newest checkpoint. Returns false when there is none: the run of config.json starts
/// again.
bool resume(const Config& config, const Folder& folder, const Corpus& corpus, Trainer& trainer) {
  auto state = load_checkpoint(folder.path, trainer.state(), config, corpus);
  if (state) {
    trainer.restore(std::move(*state));
  } else {
    const auto earlier = apps::parse_json(folder.config().string(), apps::read_file(folder.config()));
    const auto is_text = [&](const char* key) { return earlier.contains(key) && earlier[key].is_string(); };
    check<FileError>(earlier.is_object() && is_text("text_checksum") && is_text("tokenizer_checksum"),
                     "{}: must be the configuration of a run", folder.config().string());
    check_same_run(earlier, earlier["text_checksum"], earlier["tokenizer_checksum"], config, corpus);
  }
  check_value(trainer.step() <= config.training.steps, "--resume: the run is at step {} already, past --steps {}",
              trainer.step(), config.training.steps);
  return state.has_value();
}

/// Writes config.json of a run that goes on after `step`, which is 0 also when it is new.
void write_config(const Config& config, const Folder& folder, const Corpus& corpus, std::int64_t step, bool resumed) {
  const nlohmann::json earlier = earlier_settings(folder.config());
  Json json = to_json(config);
  json["text_checksum"] = corpus.checksum();
  json["tokenizer_checksum"] = corpus.tokenizer_checksum();
  if (resumed && earlier.contains("init_checksum"))
    json["init_checksum"] = earlier["init_checksum"];
  else if (!resumed && config.origin)
    json["init_checksum"] = checksum(config.origin->parameters, {});
  json["started_in"] = fs::current_path().string();
  json["git_commit"] = apps::git_commit();
  json["machine"] = apps::machine_info();
  json["starts"] = starts_with_this(earlier, step);
  if (const std::string& tokenizer = corpus.vocabulary().tokenizer_json(); !tokenizer.empty())
    write_file_atomically(folder.tokenizer(), [&](std::ostream& file) { file << tokenizer; });
  write_file_atomically(folder.config(), [&](std::ostream& file) { file << json.dump(2) << "\n"; });
}

/// Compares the gradients of the next step with f64 and reports them.
void check_gradients(const Folder& folder, const Trainer& trainer, apps::Progress& progress) {
  const nn::PrecisionReport report = trainer.precision();
  progress.message(fmt::format("step {:>6}  gradients\n{}", trainer.step() + 1, report.table(10)));
  apps::JSONLines(folder.gradients()).append_lines(json_lines(report, trainer.step() + 1));
}

/// Throws NonFiniteError unless the run skips such steps.
void check_nonfinite(const Config& config, std::int64_t step, const std::string& what) {
  check<apps::NonFiniteError>(
      config.skip_nonfinite,
      "step {}: {} is not finite; try a smaller --lr or --clip, a longer --warmup, or --on-nonfinite skip", step, what);
}

void report_nonfinite(const Config& config, std::int64_t step, const std::string& what, apps::Progress& progress) {
  check_nonfinite(config, step, what);
  progress.message(fmt::format("step {:>6}  skipped: {} is not finite", step, what));
}

double evaluate(const Trainer& trainer) {
  const double loss = trainer.evaluate();
  check<apps::NonFiniteError>(std::isfinite(loss), "step {}: the held-out loss is not finite; try a smaller --lr",
                              trainer.step());
  return loss;
}

/// The first line of a run that starts from another model: the held-out losses with its connections and with its own.
void report_origin(const Config& config, const Folder& folder, const Corpus& corpus, Trainer& trainer) {
  const double before = held_out_of_origin(config, corpus), now = evaluate(trainer), difference = now - before;
  const std::string step = config.origin->step > 0 ? fmt::format(" at step {}", config.origin->step) : "";
  apps::say("init: {}{} has the held-out loss {:.6f}; with {} connections it is {:.6f}, {:+.1e}{}\n",
            config.init.string(), step, before, config.training.connection.kind, now, difference,
            std::abs(difference) > 0.01 * before ? ": the connections change what the model computes" : "");
  apps::JSONLines(folder.metrics()).append({{"step", 0}, {"val_loss", now}, {"init_val_loss", before}});
  if (config.tensorboard) nn::EventFile(folder.events()).append(0, {{"loss/held_out", now}});
  save_if_best(folder.path, trainer.state(), now, config, corpus);
}

/// A sample of the current model: `length` characters or tokens.
std::string sample(const Config& config, const Folder& folder, const Corpus& corpus, const Trainer& trainer,
                   std::int64_t length) {
  const Rng rng = Rng(config.training.seed, ~std::uint64_t{0}).split();  // apart from the draws of training
  std::string text = sample_text(trainer.model(), corpus, length, rng);
  append_sample(folder, trainer.step(), text);
  return text;
}

/// Writes report.html; a `live` page reloads itself. Returns false if that fails, with the reason on stderr.
bool write_report(const Folder& folder, bool live) {
  std::vector<std::string> arguments{fs::absolute(folder.path).string(), "--out",
                                     fs::absolute(folder.report()).string()};
  if (live) arguments.emplace_back("--live");
  return apps::run_script("report.py", arguments);
}

/// Trains to the last step. Returns whether it was interrupted.
bool train(const Config& config, const Folder& folder, const Corpus& corpus, Trainer& trainer,
           dist::Communicator& ranks) {
  const std::int64_t steps = config.training.steps, tokens = config.training.batch * config.training.context;
  const auto due = [&](std::int64_t every) { return trainer.step() % every == 0 || trainer.step() == steps; };
  apps::JSONLines metrics(folder.metrics());
  std::optional<apps::JSONLines> ledger;
  if (config.ledger) ledger.emplace(folder.ledger());
  std::optional<nn::EventFile> events;
  if (config.tensorboard) events.emplace(folder.events());
  apps::Progress progress("step", steps, trainer.step(), /*may_draw=*/ranks.size() == 1);
  bool saved = has_checkpoint(folder.path) || config.init.empty();
  bool reporting = config.report && write_report(folder, /*live=*/true);
  while (trainer.step() < steps && !ranks.any(interrupted())) {
    if (config.check_gradients > 0 && (trainer.step() + 1) % config.check_gradients == 0)
      check_gradients(folder, trainer, progress);
    const auto start = std::chrono::steady_clock::now();
    const apps::StepResult result = trainer.train_step({.gradients = config.ledger});
    if (ledger) ledger->append(ledger_line(trainer, result));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const double speed = static_cast<double>(tokens) / elapsed.count();
    if (!result.nonfinite.empty()) report_nonfinite(config, trainer.step(), result.nonfinite, progress);

    std::optional<double> held_out;
    if (due(config.eval_every)) {
      held_out = evaluate(trainer);
      save_if_best(folder.path, trainer.state(), *held_out, config, corpus);
      progress.message(
          formatted("step {:>6}  train loss {:.4f}  held-out loss {:.4f}", trainer.step(), result.loss, *held_out));
    }
    metrics.append(metrics_line(trainer, result, held_out, speed));
    if (events) events->append(trainer.step(), scalars(trainer, result, held_out, speed));
    if (config.telemetry_every > 0 && due(config.telemetry_every)) {
      const std::vector<mhc::ConnectionStats> stats = trainer.telemetry();
      apps::JSONLines(folder.telemetry()).append_lines(json_lines(stats, trainer.step()));
      if (events) events->append(trainer.step(), scalars(stats));
    }
    if (reporting && held_out && trainer.step() < steps) {
      // Each id of a sample reads a window, a step reads a batch and runs backward: this takes as long as a few steps.
      const std::int64_t length = std::min(config.sample, 16 * config.training.batch);
      if (length > 0) sample(config, folder, corpus, trainer, length);
      reporting = write_report(folder, /*live=*/true);
    }
    saved = due(config.checkpoint_every);
    if (saved) save_checkpoint(folder.path, trainer.state(), config, corpus);
    progress.update(trainer.step(), formatted("loss {:.4f} | {:.1f}k tokens/s", result.loss, speed / 1000));
  }
  if (!saved) save_checkpoint(folder.path, trainer.state(), config, corpus);
  progress.finish();
  return ranks.any(interrupted());
}

/// train() on the other ranks, which write nothing.
bool follow(const Config& config, Trainer& trainer, dist::Communicator& ranks) {
  const std::int64_t steps = config.training.steps;
  while (trainer.step() < steps && !ranks.any(interrupted())) {
    const apps::StepResult result = trainer.train_step({.gradients = config.ledger});
    if (!result.nonfinite.empty()) check_nonfinite(config, trainer.step(), result.nonfinite);
    if (trainer.step() % config.eval_every == 0 || trainer.step() == steps) evaluate(trainer);
  }
  return ranks.any(interrupted());
}

/// Prints the configuration, the model and the text.
void introduce(const Config& config, const Folder& folder, const Corpus& corpus, const Trainer& trainer) {
  apps::say("{}\n{}\n", to_json(config).dump(), nn::summary(trainer.model()));
  if (config.training.bits == Bits::portable)
    apps::say("bits: portable, so products are braid's own\n");
  else if (config.training.dtype == DType::bf16)
    apps::say(
        "bf16: products by {}{}\n", bf16_products(),
        bf16_products() == std::string_view("f32") ? ", this processor has none: half the memory, no faster" : "");
  if (config.training.matmul_precision != MatmulPrecision::highest && bf16_terms_per_f32() == 0)
    apps::say("--matmul-precision {}: this processor has no faster products, so they are those of f32\n",
              name(config.training.matmul_precision));
  apps::say("text: {} {} of {}; {} held out. Results: {}\n", corpus.size(), corpus.vocabulary().unit(), corpus.vocab(),
            corpus.size() - corpus.train_size(), folder.path.string());
  if (config.resume) apps::say("resumed at step {}\n", trainer.step());
}

/// Throws Error if a rank would get other bits than rank 0: another environment, text, tokenizer or setting.
void check_same_everywhere(const Config& config, const Corpus& corpus, dist::Communicator& ranks) {
  ranks.check_same("BRAID_MHC_PATH", apps::mhc_path());
  ranks.check_same("instruction set", apps::arithmetic(config.training.dtype, config.training.bits));
  ranks.check_same("text", corpus.checksum());
  ranks.check_same("tokenizer", corpus.tokenizer_checksum());
  Json settings = to_json(config);
  settings["text"] = settings["tokenizer"] = "";  // paths may differ, contents may not
  settings["on_nonfinite"] = config.skip_nonfinite ? "skip" : "stop";
  const std::string text = settings.dump();
  const auto mine = apps::parse_json("settings", text), first = apps::parse_json("settings", ranks.broadcast(text));
  if (!ranks.any(mine != first)) return;
  for (const auto& [key, value] : first.items()) ranks.check_same(key, mine.value(key, nlohmann::json()).dump());
}

/// The run on rank 0, or of a process alone.
int lead(Config config, const Corpus& corpus, Trainer& trainer, dist::Communicator& ranks) {
  const Folder folder{config.out};
  if (!config.resume) apps::make_results_folder(folder.path);
  const apps::FolderLock lock(folder.path);
  check_folder(config, folder);  // another process may have written to it meanwhile
  const bool resumed = config.resume && resume(config, folder, corpus, trainer);
  write_config(config, folder, corpus, trainer.step(), resumed);
  rewind(folder, resumed ? trainer.step() : -1);
  share_state(trainer.state(), config, ranks);

  introduce(config, folder, corpus, trainer);
  if (ranks.any(config.origin && !resumed)) report_origin(config, folder, corpus, trainer);
  config.origin.reset();  // frees its memory
  bool stopped = false;
  try {
    stopped = train(config, folder, corpus, trainer, ranks);
  } catch (const apps::NonFiniteError&) {
    if (config.report) write_report(folder, /*live=*/false);
    throw;
  }
  if (stopped)
    apps::say("interrupted at step {}; continue with: {}{}\n", trainer.step(),
              ranks.size() > 1 ? fmt::format("mpirun -n {} ", ranks.size()) : "", config.command_to_resume);
  const bool hurried = stopped && ranks.size() > 1;  // mpirun kills them a second after it has passed the signal on
  if (!hurried && apps::run_plot_script("plot_loss.py", folder.metrics(), folder.picture()))
    apps::say("picture: {}\n", folder.picture().string());
  const bool samples = !stopped && config.sample > 0;
  const std::string text = samples ? sample(config, folder, corpus, trainer, config.sample) : "";
  if (config.report && write_report(folder, /*live=*/false)) apps::say("report: {}\n", folder.report().string());
  if (stopped) return 130;
  if (samples) apps::say("\n--- sample ---\n{}\n", text);
  return 0;
}

int run(Config config, const std::shared_ptr<dist::Communicator>& communicator) {
  dist::Communicator& ranks = *communicator;
  if (config.threads > 0) set_num_threads(config.threads);
  set_matmul_precision(config.training.matmul_precision);
  const BitsScope bits(config.training.bits);
  check_value(config.training.blocks >= ranks.size(),
              "--blocks: {} ranks need at least as many blocks but there are {}", ranks.size(), config.training.blocks);
  if (ranks.rank() == 0) check_folder(config, {config.out});
  const Corpus corpus = read_corpus(config);
  check_same_everywhere(config, corpus, ranks);
  if (ranks.size() == 1) apps::check_memory_of_steps(config.training, corpus, platform::available_bytes());
  Trainer trainer(config.training, corpus, communicator);
  if (config.origin) start_from_origin(config, corpus, trainer);
  if (ranks.rank() == 0) return lead(std::move(config), corpus, trainer, ranks);
  config.origin.reset();
  share_state(trainer.state(), config, ranks);
  if (ranks.any(false)) evaluate(trainer);
  if (!follow(config, trainer, ranks)) return 0;
  platform::discard_output(platform::kStderr);  // mpirun may kill rank 0, which has saved, before this one
  return 130;
}

}  // namespace
}  // namespace braid::train_lm

int main(int argc, char** argv) {
  using namespace braid::train_lm;
  braid::platform::ignore_closed_pipes();  // training continues when the reader of stdout is gone
  return braid::apps::run_main("train_lm", [&] {
    catch_interrupts();
    return braid::apps::over_ranks("train_lm", patience(argc, argv),
                                   [&](const auto& ranks) { return run(parse(argc, argv), ranks); });
  });
}

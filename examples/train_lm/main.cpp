// Trains a small character-level transformer: the main example. `train_lm --help` lists the flags.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <braid/core/atomic_file.h>
#include <braid/core/parallel.h>
#include <braid/nn/summary.h>

#include "../common/json_lines.h"
#include "../common/progress.h"
#include "../common/run_info.h"
#include "../common/trainer.h"
#include "checkpoint.h"
#include "config.h"
#include "sample.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;
using examples::Corpus;
using examples::Trainer;
using Json = nlohmann::ordered_json;

volatile std::sig_atomic_t interrupted = 0;

/// The files of a run.
struct Folder {
  fs::path path;
  fs::path config() const { return path / "config.json"; }
  fs::path metrics() const { return path / "metrics.jsonl"; }
  fs::path telemetry() const { return path / "telemetry.jsonl"; }
  fs::path gradients() const { return path / "gradients.jsonl"; }
  fs::path checkpoint() const { return path / "checkpoint.safetensors"; }
  fs::path picture() const { return path / "loss.png"; }
};

/// Reads the checkpoint of a run that is resumed; nothing has been written when this throws.
void open_run(const Config& config, const Folder& folder, const Corpus& corpus, Trainer& trainer) {
  if (config.resume) {
    check<FileError>(fs::exists(folder.config()), "--resume: {} holds no run", folder.path.string());
    if (fs::exists(folder.checkpoint()))
      trainer.restore(load_checkpoint(folder.checkpoint(), trainer.state(), config, corpus));
    check_value(trainer.step() <= config.training.steps, "--resume: the run is at step {} already, past --steps {}",
                trainer.step(), config.training.steps);
    return;
  }
  check_value(!fs::exists(folder.config()), "--out: {} holds a run; continue it with --resume or name another folder",
              folder.path.string());
}

void write_config(const Config& config, const Folder& folder) {
  examples::make_results_folder(folder.path);
  Json json = to_json(config);
  json["git_commit"] = examples::git_commit();
  json["machine"] = examples::machine_info();
  write_file_atomically(folder.config(), [&](std::ostream& file) { file << json.dump(2) << "\n"; });
}

Json metrics_line(std::int64_t step, const examples::StepResult& result, std::optional<double> held_out, double speed) {
  Json line{{"step", step}, {"train_loss", result.loss}};
  if (held_out) line["val_loss"] = *held_out;
  line["grad_norm"] = result.grad_norm;
  line["tokens_per_s"] = static_cast<std::int64_t>(speed);
  return line;
}

/// A line for all gradients, one for each op and one for each parameter.
std::string json_lines(const nn::PrecisionReport& r, std::int64_t step) {
  std::vector<Json> lines;
  lines.push_back({{"dtype", name(r.dtype)},
                   {"loss", r.loss},
                   {"loss_error", r.loss_error},
                   {"relative_error", r.relative_error},
                   {"remainder", r.remainder}});
  for (const auto& op : r.ops)
    lines.push_back({{"op", op.name}, {"relative_error", op.relative_error}, {"share", op.share}});
  for (const auto& row : r.rows)
    lines.push_back({{"parameter", row.name},
                     {"gradient", row.gradient},
                     {"relative_error", row.relative_error},
                     {"max_ulps", row.max_ulps},
                     {"worst_op", row.worst_op},
                     {"share", row.share}});
  std::string text;
  for (const Json& line : lines) {
    Json stamped{{"step", step}};
    stamped.update(line);
    text += stamped.dump() + "\n";
  }
  return text;
}

/// Of the step that comes next.
void check_gradients(const Folder& folder, const Trainer& trainer, examples::Progress& progress) {
  const nn::PrecisionReport report = trainer.precision();
  progress.message(fmt::format("step {:>6}  gradients\n{}", trainer.step() + 1, report.table(10)));
  examples::JSONLines(folder.gradients()).append_lines(json_lines(report, trainer.step() + 1));
}

void train(const Config& config, const Folder& folder, const Corpus& corpus, Trainer& trainer) {
  const std::int64_t steps = config.training.steps, tokens = config.training.batch * config.training.context;
  const auto due = [&](std::int64_t every) { return trainer.step() % every == 0 || trainer.step() == steps; };
  examples::JSONLines metrics(folder.metrics());
  examples::Progress progress("step", steps, trainer.step());
  while (trainer.step() < steps && interrupted == 0) {
    if (config.check_gradients > 0 && (trainer.step() + 1) % config.check_gradients == 0)
      check_gradients(folder, trainer, progress);
    const auto start = std::chrono::steady_clock::now();
    const examples::StepResult result = trainer.train_step();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const double speed = static_cast<double>(tokens) / elapsed.count();

    std::optional<double> held_out;
    if (due(config.eval_every)) {
      held_out = trainer.evaluate();
      progress.message(
          fmt::format("step {:>6}  train loss {:.4f}  held-out loss {:.4f}", trainer.step(), result.loss, *held_out));
    }
    metrics.append(metrics_line(trainer.step(), result, held_out, speed));
    if (config.telemetry_every > 0 && due(config.telemetry_every))
      examples::JSONLines(folder.telemetry()).append_lines(mhc::json_lines(trainer.telemetry(), trainer.step()));
    if (due(config.checkpoint_every) || interrupted != 0)
      save_checkpoint(folder.checkpoint(), trainer.state(), config, corpus);
    progress.update(trainer.step(), fmt::format("loss {:.4f} | {:.1f}k tokens/s", result.loss, speed / 1000));
  }
  progress.finish();
}

int run(const Config& config) {
  if (config.threads > 0) set_num_threads(config.threads);
  const Folder folder{config.out};
  const Corpus corpus(examples::read_text(config.text), config.training.context);
  Trainer trainer(config.training, corpus);
  open_run(config, folder, corpus, trainer);
  write_config(config, folder);
  for (const fs::path& lines : {folder.metrics(), folder.telemetry(), folder.gradients()})
    examples::rewind_json_lines(lines, trainer.step());

  fmt::print("{}\n{}\n", to_json(config).dump(), nn::summary(trainer.model()));
  fmt::print("text: {} characters, {} distinct; {} held out. Results: {}\n", corpus.size(), corpus.vocab(),
             corpus.size() - corpus.train_size(), folder.path.string());
  if (config.resume) fmt::print("resumed at step {}\n", trainer.step());
  train(config, folder, corpus, trainer);
  if (examples::run_plot_script("plot_loss.py", folder.metrics(), folder.picture()))
    fmt::print("picture: {}\n", folder.picture().string());
  if (interrupted != 0) {
    fmt::print("interrupted at step {}; continue with --resume --out {}\n", trainer.step(), folder.path.string());
    return 130;
  }
  if (config.sample > 0) {
    const Rng rng = Rng(config.training.seed, ~std::uint64_t{0}).split();  // apart from the draws of training
    fmt::print("\n--- sample ---\n{}\n", sample_text(trainer.model(), corpus, config.sample, rng));
  }
  return 0;
}

}  // namespace
}  // namespace braid::train_lm

int main(int argc, char** argv) {
  std::signal(SIGINT, [](int) { braid::train_lm::interrupted = 1; });
  try {
    return braid::train_lm::run(braid::train_lm::parse(argc, argv));
  } catch (const braid::Error& error) {
    fmt::print(stderr, "train_lm: {}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "train_lm: a model and batches of these sizes do not fit into memory\n");
    return 2;
  }
}

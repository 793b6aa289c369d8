// Trains a small character-level transformer: the main example. `train_lm --help` lists the flags.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include <fmt/core.h>

#include <braid/core/atomic_file.h>
#include <braid/core/parallel.h>
#include <braid/nn/summary.h>

#include "../common/json_lines.h"
#include "../common/progress.h"
#include "../common/run_info.h"
#include "config.h"
#include "corpus.h"
#include "trainer.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

volatile std::sig_atomic_t interrupted = 0;

/// The files of a run.
struct Folder {
  fs::path path;
  fs::path config() const { return path / "config.json"; }
  fs::path metrics() const { return path / "metrics.jsonl"; }
  fs::path checkpoint() const { return path / "checkpoint.safetensors"; }
  fs::path picture() const { return path / "loss.png"; }
};

/// Reads the checkpoint of a run that is resumed; nothing has been written when this throws.
void open_run(const Config& config, const Folder& folder, Trainer& trainer) {
  if (config.resume) {
    check<FileError>(fs::exists(folder.config()), "--resume: {} holds no run", folder.path.string());
    if (fs::exists(folder.checkpoint())) trainer.load(folder.checkpoint());
    check_value(trainer.step() <= config.steps, "--resume: the run is at step {} already, past --steps {}",
                trainer.step(), config.steps);
    return;
  }
  check_value(!fs::exists(folder.config()), "--out: {} holds a run; continue it with --resume or name another folder",
              folder.path.string());
}

void write_config(const Config& config, const Folder& folder) {
  std::error_code error;
  fs::create_directories(folder.path, error);
  check<FileError>(!error, "--out: {} cannot be made: {}", folder.path.string(), error.message());
  Json json = to_json(config);
  json["git_commit"] = examples::git_commit();
  json["machine"] = examples::machine_info();
  write_file_atomically(folder.config(), [&](std::ostream& file) { file << json.dump(2) << "\n"; });
}

/// Lines after the checkpoint belong to steps that will be taken again.
void rewind_metrics(const Folder& folder, std::int64_t step) {
  auto lines = examples::read_json_lines(folder.metrics());
  std::erase_if(lines, [&](const Json& line) { return line.value("step", std::int64_t{0}) > step; });
  examples::write_json_lines(folder.metrics(), lines);
}

void train(const Config& config, const Folder& folder, Trainer& trainer) {
  examples::JsonLines metrics(folder.metrics());
  examples::Progress progress("step", config.steps, trainer.step());
  const double tokens = static_cast<double>(config.batch * config.context);
  std::string held_out;
  while (trainer.step() < config.steps && interrupted == 0) {
    const auto start = std::chrono::steady_clock::now();
    const StepResult result = trainer.train_step();
    const double speed = tokens / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::int64_t step = trainer.step();

    Json line{{"step", step}, {"train_loss", result.loss}};
    if (step % config.eval_every == 0 || step == config.steps) {
      const double loss = trainer.evaluate();
      line["val_loss"] = loss;
      held_out = fmt::format(", held out {:.4f}", loss);
      progress.message(fmt::format("step {:>6}  train loss {:.4f}  held-out loss {:.4f}", step, result.loss, loss));
    }
    line["grad_norm"] = result.grad_norm;
    line["tokens_per_s"] = static_cast<std::int64_t>(speed);
    metrics.append(line);
    if (step % config.checkpoint_every == 0 || step == config.steps || interrupted != 0)
      trainer.save(folder.checkpoint());
    progress.update(step, fmt::format("loss {:.4f}{} | {:.1f}k tokens/s", result.loss, held_out, speed / 1000));
  }
  progress.finish();
}

int run(const Config& config) {
  if (config.threads > 0) set_num_threads(config.threads);
  const Folder folder{config.out};
  const Corpus corpus(read_text(config.text), config.context);
  Trainer trainer(config, corpus);
  open_run(config, folder, trainer);
  write_config(config, folder);
  rewind_metrics(folder, trainer.step());

  fmt::print("{}\n{}\n", to_json(config).dump(), nn::summary(trainer.model()));
  fmt::print("text: {} characters, {} distinct; {} held out. Results: {}\n", corpus.size(), corpus.vocab(),
             corpus.size() - corpus.train_size(), folder.path.string());
  if (config.resume) fmt::print("resumed at step {}\n", trainer.step());
  train(config, folder, trainer);
  if (examples::run_plot_script("plot_loss.py", folder.metrics(), folder.picture()))
    fmt::print("picture: {}\n", folder.picture().string());
  if (interrupted != 0) {
    fmt::print("interrupted at step {}; continue with --resume --out {}\n", trainer.step(), folder.path.string());
    return 130;
  }
  if (config.sample > 0) fmt::print("\n--- sample ---\n{}\n", trainer.generate(config.sample));
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
  }
}

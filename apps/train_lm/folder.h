#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace braid::train_lm {

/// The files of a run beside its checkpoints.
struct Folder {
  std::filesystem::path path;
  std::filesystem::path config() const { return path / "config.json"; }
  std::filesystem::path tokenizer() const { return path / "tokenizer.json"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  std::filesystem::path telemetry() const { return path / "telemetry.jsonl"; }
  std::filesystem::path gradients() const { return path / "gradients.jsonl"; }
  std::filesystem::path ledger() const { return path / "ledger.jsonl"; }
  std::filesystem::path samples() const { return path / "samples.jsonl"; }
  std::filesystem::path events() const { return path / "events.out.tfevents.braid"; }  // TensorBoard looks for tfevents
  std::filesystem::path picture() const { return path / "loss.png"; }
  std::filesystem::path report() const { return path / "report.html"; }
};

/// Drops the lines and events of steps past `step`, which will be repeated, and reports missing lines of earlier steps.
/// A file that is damaged or cannot be read does not stop a run: it gets another name, and one line says so. Reads all
/// files before it writes.
void rewind(const Folder& folder, std::int64_t step);

/// Appends a sample, in place of an earlier one of the same step.
void append_sample(const Folder& folder, std::int64_t step, const std::string& text);

}  // namespace braid::train_lm

#include "saved_run.h"

#include <cerrno>
#include <cstring>
#include <limits>

#include <braid/core/files/checksum.h>
#include <braid/core/files/file_system.h>
#include <braid/core/utf8.h>
#include <braid/nn/pretrained/config.h>
#include <braid/nn/pretrained/pretrained.h>

#include "../common/json_lines.h"
#include "../common/parse_number.h"

namespace braid::train_lm {
namespace {

namespace fs = std::filesystem;

/// Throws UnreadableFile when the file cannot be read, another FileError when it is damaged.
SafetensorsFile load_verified(const fs::path& path) {
  SafetensorsFile file = load_safetensors(path);
  const auto stored = file.metadata.extract("checksum");
  check<FileError>(!stored.empty(), "{}: the checkpoint has no checksum", path.string());
  const std::string actual = checksum(file.tensors, file.metadata);
  check<FileError>(stored.mapped() == actual, "{}: the checkpoint is damaged: its checksum must be {} but is {}",
                   path.string(), excerpt(stored.mapped()), actual);
  return file;
}

/// A size in the settings of a run. Throws ValueError naming it.
std::int64_t size_in(const char* key, const nlohmann::json& value, std::int64_t least) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::optional<std::int64_t> size = apps::integer_of(value);
  check_value(size && *size >= least && *size <= kMost, "'{}' must be a whole number from {} to {} but is {}", key,
              least, kMost, shortened(value.dump()));
  return *size;
}

/// Refuses settings whose model has more tensors or elements than the checkpoint, before it takes memory.
void check_sizes(const SavedRun& run, const fs::path& path) {
  const apps::TrainerSettings& s = run.training;
  const auto embedding = run.parameters.find("embedding.weight");
  check<FileError>(embedding != run.parameters.end() && embedding->second.rank() == 2,
                   "{}: the checkpoint has no embedding", path.string());
  const std::int64_t width = embedding->second.size(1),
                     channels = s.architecture ? s.architecture->channels : s.channels;
  check<FileError>(channels == width, "{}: the checkpoint's 'config' has {} channels but its embedding {}",
                   path.string(), channels, width);
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : run.parameters) elements += tensor.numel();
  const std::int64_t layers = s.architecture ? s.architecture->layers : s.layers;
  const std::int64_t room = std::min(std::ssize(run.parameters) / std::max<std::int64_t>(1, s.experts),
                                     elements / std::max<std::int64_t>(1, 2 * channels));  // of its two norms
  check<FileError>(
      layers <= room && s.lora <= elements,
      "{}: the checkpoint's 'config' has {} layers of {} experts and LoRA of rank {}, but its {} tensors of "
      "{} elements have no room for them",
      path.string(), layers, s.experts, s.lora, run.parameters.size(), elements);
}

}  // namespace

const std::string& Checkpoint::entry(const std::string& key) const {
  const auto found = file.metadata.find(key);
  check<FileError>(found != file.metadata.end(), "{}: the checkpoint has no '{}'", path.string(), key);
  return found->second;
}

template <class T>
T Checkpoint::number(const std::string& key) const {
  const std::string& text = entry(key);
  const std::optional<T> value = apps::parse_number<T>(text);
  check<FileError>(value.has_value(), "{}: the checkpoint's '{}' must be a {} number but is '{}'", path.string(), key,
                   std::is_integral_v<T> ? "whole" : "finite", excerpt(text));
  return *value;
}
template double Checkpoint::number(const std::string&) const;
template std::int64_t Checkpoint::number(const std::string&) const;
template std::uint64_t Checkpoint::number(const std::string&) const;

nlohmann::json Checkpoint::config() const {
  auto config = apps::parse_json(path.string() + ": the checkpoint's 'config'", entry("config"));
  check<FileError>(config.is_object(), "{}: the checkpoint's 'config' must be a JSON object", path.string());
  return config;
}

nn::NamedTensors Checkpoint::tensors(std::string_view prefix) const {
  nn::NamedTensors chosen;
  for (const auto& [name, tensor] : file.tensors)
    if (name.starts_with(prefix)) chosen.emplace(name.substr(prefix.size()), tensor);
  return chosen;
}

fs::path next_checkpoint(const fs::path& folder) { return folder / "checkpoint.next.safetensors"; }
fs::path last_checkpoint(const fs::path& folder) { return folder / "checkpoint.safetensors"; }
fs::path previous_checkpoint(const fs::path& folder) { return folder / "checkpoint.previous.safetensors"; }
fs::path best_checkpoint(const fs::path& folder) { return folder / "best.safetensors"; }

void move_file(const fs::path& from, const fs::path& to) {
  const bool done = file_system().rename(from, to) == 0;
  const int error = errno;
  check<FileError>(done, "{}: cannot become {}: {}", from.string(), to.filename().string(), std::strerror(error));
}

bool has_checkpoint(const fs::path& folder) {
  return fs::exists(next_checkpoint(folder)) || fs::exists(last_checkpoint(folder)) ||
         fs::exists(previous_checkpoint(folder));
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& folder) {
  std::string damage;
  for (const fs::path& path : {next_checkpoint(folder), last_checkpoint(folder), previous_checkpoint(folder)}) {
    if (!fs::exists(path)) continue;
    try {
      return Checkpoint{path, load_verified(path), damage};
    } catch (const UnreadableFile&) {
      throw;  // it may be undamaged, and the next save would replace it
    } catch (const FileError& error) {
      if (damage.empty()) damage = error.what();
    }
  }
  check<FileError>(damage.empty(), "{}", damage);
  return std::nullopt;
}

std::optional<Checkpoint> checkpoint_before(const fs::path& folder, std::int64_t step) {
  std::optional<Checkpoint> found;
  std::int64_t newest = -1;
  for (const auto& path_in : {next_checkpoint, last_checkpoint, previous_checkpoint, best_checkpoint}) {
    const fs::path path = path_in(folder);
    if (!fs::exists(path)) continue;
    try {
      Checkpoint saved{path, load_verified(path), ""};
      const auto its = saved.number<std::int64_t>("step");
      if (its < step && its > newest) newest = its, found = std::move(saved);
    } catch (const FileError&) {
      continue;  // an older one serves as well
    }
  }
  return found;
}

fs::path folder_of(const fs::path& run) { return fs::is_directory(run) ? run : run.parent_path(); }

SavedRun load_run(const fs::path& path) {
  check<FileError>(fs::exists(path), "{}: there is no such folder or file", path.string());
  const std::optional<Checkpoint> saved =
      fs::is_directory(path) ? newest_checkpoint(path) : Checkpoint{path, load_verified(path), ""};
  check<FileError>(saved.has_value(), "{}: holds no checkpoint", path.string());
  SavedRun run{.training = {},
               .alphabet = saved->entry("alphabet"),
               .tokenizer_checksum = saved->entry("tokenizer_checksum"),
               .parameters = saved->tensors("model.")};
  run.step = saved->number<std::int64_t>("step");
  const nlohmann::json config = saved->config();
  try {
    run.text = config.value("text", "");
    run.training.connection = apps::connection_options(config);
    for (const auto& [key, value] : {std::pair("layers", &run.training.layers),
                                     {"channels", &run.training.channels},
                                     {"heads", &run.training.heads},
                                     {"context", &run.training.context}})
      *value = size_in(key, config.at(key), 1);
    for (const auto& [key, value] : {std::pair("experts", &run.training.experts),
                                     {"experts_per_token", &run.training.experts_per_token},
                                     {"lora", &run.training.lora}})
      *value = size_in(key, config.value(key, nlohmann::json(*value)), 0);  // older runs have none
    run.training.value_residual = config.value("value_residual", false);
    run.training.dtype = config.value("dtype", "f32") == "bf16" ? DType::bf16 : DType::f32;
    if (config.contains("architecture"))
      run.training.architecture =
          nn::parse_pretrained_config(saved->path.string(), config["architecture"].dump()).config;
  } catch (const ValueError& error) {
    throw FileError(fmt::format("{}: the checkpoint's 'config': {}", saved->path.string(), error.what()));
  } catch (const nlohmann::json::exception& error) {
    throw FileError(fmt::format("{}: the checkpoint's 'config' is not that of a run: {}", saved->path.string(),
                                excerpt(error.what())));
  }
  check_sizes(run, saved->path);
  return run;
}

SavedRun load_origin(const fs::path& folder) {
  if (has_checkpoint(folder) || !fs::is_directory(folder)) return load_run(folder);
  const bool pretrained = fs::exists(folder / "config.json");
  check<FileError>(pretrained, "{}: holds neither the checkpoint of a run nor the config.json of a pretrained model",
                   folder.string());
  const apps::Model model = nn::load_pretrained(folder, mhc::pretrained_connection);
  const nn::TransformerConfig& c = model.config;
  SavedRun origin{.training = {}, .alphabet = "", .tokenizer_checksum = "", .parameters = nn::to_tensors(model)};
  origin.pretrained = true;
  origin.training.architecture = c;
  origin.training.layers = c.layers;
  origin.training.channels = c.channels;
  origin.training.heads = c.heads;
  origin.training.context = c.context;
  if (c.streams)
    origin.training.connection = {.kind = "deepseek-v4",
                                  .streams = c.streams->streams,
                                  .sinkhorn_iterations = c.streams->sinkhorn_iterations,
                                  .head = "weighted"};
  return origin;
}

}  // namespace braid::train_lm

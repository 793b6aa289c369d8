#include <braid/nn/pretrained/detail/folder.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <system_error>

#include <braid/core/files/atomic_file.h>
#include <braid/core/files/detail/safetensors_reader.h>
#include <braid/core/files/safetensors.h>
#include <braid/core/utf8.h>

namespace braid::nn::detail {
namespace {

namespace fs = std::filesystem;
using braid::detail::facts;
using braid::detail::SafetensorsReader;
using braid::detail::StoredTensor;
using Wanted = std::map<std::string, const PretrainedTensor*>;

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kHead = "lm_head.weight";
constexpr std::uint64_t kLeastPerLayer = 6;  // weights of a layer that every family has

std::string read_text(const std::string& where, const fs::path& path) {
  constexpr std::uint64_t kMost = 100'000'000;
  const RegularFile file(where, path);
  check<FileError>(file.size() <= kMost, "{}: must have at most {} bytes but has {}", where, kMost, file.size());
  return file.contents();
}

/// Why a stored tensor does not fit, empty if it does.
std::string misfit(const PretrainedTensor& tensor, const StoredTensor& stored) {
  const auto& [type, bits, dtype] = facts(stored.type);
  if (stored.shape != tensor.shape())
    return fmt::format("{} must have shape {} but has {}", tensor.name, tensor.shape(), stored.shape);
  const bool integers = tensor.dtype() == DType::i32;
  if (!dtype || (*dtype == DType::i32) != integers)
    return fmt::format("{} must be {} but is {}", tensor.name, integers ? "I32 or I64" : "F32, F16, BF16 or F64", type);
  return {};
}

void open_shards(PretrainedFolder& files, const fs::path& folder) {
  const auto where = [&](const std::string& name) { return (fs::path(files.where) / name).string(); };
  const auto open = [&](const std::string& name) {
    files.readers.push_back(std::make_shared<SafetensorsReader>(where(name), folder / name));
  };
  std::error_code ignored;
  if (fs::exists(folder / kWeights, ignored)) return open(kWeights);
  check<FileError>(fs::exists(folder / kIndex, ignored), "{}: must have {} or {}{}", files.where, kWeights, kIndex,
                   fs::exists(folder / "pytorch_model.bin", ignored) ? "; convert pytorch_model.bin in Python" : "");
  files.index = parse_shard_index(where(kIndex), read_text(where(kIndex), folder / kIndex));
  std::set<std::string> shards;
  for (const auto& [name, file] : files.index) shards.insert(file);
  for (const std::string& file : shards) open(file);
}

/// Bounds the settings by the sizes of the files, so that a damaged config.json cannot allocate a huge model. Sizes
/// that take no memory before tensors are read are not checked.
void check_sizes(const PretrainedFolder& files) {
  const TransformerConfig& config = files.config;
  std::uint64_t tensors = 0, bytes = 0;
  for (const auto& reader : files.readers)
    for (const StoredTensor& stored : reader->header().tensors) ++tensors, bytes += stored.end - stored.begin;
  const auto require = [&](const char* setting, std::int64_t value, std::uint64_t have, const char* unit,
                           std::uint64_t each = 1) {
    check<FileError>(static_cast<std::uint64_t>(value) <= have / each,
                     "{}: {} specifies {} {} but the files' {} {} have room for {}", files.where, kConfig, value,
                     setting, have, unit, have / each);
  };
  const std::uint64_t experts = config.experts ? static_cast<std::uint64_t>(config.experts->experts) : 0;
  require("layers", config.layers, tensors, "tensors", kLeastPerLayer + 3 * experts);
  require("channels", config.channels, bytes, "bytes");
  require("heads", config.heads, bytes, "bytes");
  require("channels per head", config.head_size.value_or(1), bytes, "bytes");
  require("hidden channels", config.hidden.value_or(1), bytes, "bytes");
  if (config.token_routed > 0)  // each a table of i32
    require("token ids", config.vocab, bytes, "bytes",
            4 * static_cast<std::uint64_t>(config.token_routed) * static_cast<std::uint64_t>(config.experts->top));
  const std::int64_t n = config.streams ? config.streams->streams : 0;
  require("weights of each connection", n * n * (n + 2) * config.channels, bytes, "bytes",
          4 * static_cast<std::uint64_t>(config.layers));
}

/// Whether the tensor is determined by the settings, as a causal mask is, and need not be read.
bool is_constant(Family family, std::string_view name) {
  if (family == Family::gpt2) return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  return name.ends_with(".rotary_emb.inv_freq") || (family == Family::deepseek_v4 && name.starts_with("mtp."));
}

/// The tensor with this name, with or without the prefix of all names but the head's, which files of a model without a
/// head omit; null if there is none.
const PretrainedTensor* tensor_named(const std::string& name, const Wanted& wanted, Family family) {
  for (const std::string& full : {name, (family == Family::gpt2 ? "transformer." : "model.") + name})
    if (const auto found = wanted.find(full); found != wanted.end()) return found->second;
  return nullptr;
}

void check_names(const PretrainedFolder& files, const Wanted& wanted) {
  std::vector<std::string> problems;
  std::set<std::string> seen;
  for (const auto& reader : files.readers)
    for (const StoredTensor& stored : reader->header().tensors) {
      const PretrainedTensor* tensor = tensor_named(stored.name, wanted, files.family);
      const bool known = is_constant(files.family, stored.name) || stored.name == kHead;
      if (tensor == nullptr && !known) problems.push_back(excerpt(stored.name) + " is unexpected");
      if (tensor == nullptr) continue;
      if (!seen.insert(tensor->name).second) problems.push_back(tensor->name + " occurs twice");
      if (const std::string problem = misfit(*tensor, stored); !problem.empty()) problems.push_back(problem);
    }
  for (const auto& [name, tensor] : wanted) {
    if (seen.contains(name)) continue;
    const auto file = files.index.find(name);
    problems.push_back(name + " is missing" + (file == files.index.end() ? "" : " from " + file->second));
  }
  check<FileError>(problems.empty(), "{}: {}", files.where, listed(problems));
}

void check_experts(const PretrainedFolder& files, const std::string& name, const Tensor& table) {
  for (const std::int32_t e : table.to_vector<std::int32_t>())
    check<FileError>(0 <= e && e < files.config.experts->experts, "{}: {} must name experts from 0 to {} but has {}",
                     files.where, name, files.config.experts->experts - 1, e);
}

}  // namespace

PretrainedFolder::PretrainedFolder(const fs::path& folder, DType dtype) : where("load_pretrained: " + folder.string()) {
  check_floating("load_pretrained", dtype);
  const std::string path = (fs::path(where) / kConfig).string();
  PretrainedConfig::operator=(parse_pretrained_config(path, read_text(path, folder / kConfig)));
  config.dtype = dtype;
  open_shards(*this, folder);
  check_sizes(*this);
}

void PretrainedFolder::read(const NamedParams& params) {
  const BypassCache fresh_memory;
  check_value(!config.streams || std::ranges::any_of(params, in_connection),
              "{}: the model has hyper-connections, which mhc::pretrained_connection makes, but got none", where);
  const std::vector<PretrainedTensor> tensors = pretrained_tensors(family, config, params);
  Wanted wanted;
  for (const PretrainedTensor& tensor : tensors) wanted.emplace(tensor.name, &tensor);
  check_names(*this, wanted);
  Tensor spare_head;
  for (const auto& reader : readers)
    for (const StoredTensor& stored : reader->header().tensors) {
      Tensor value = reader->next();
      if (const PretrainedTensor* tensor = tensor_named(stored.name, wanted, family)) {
        if (value.dtype() == DType::i32) check_experts(*this, stored.name, value);
        tensor->assign(std::move(value), config.parameters());
      } else if (stored.name == kHead)
        spare_head = value;
      release_cached_memory();  // of the tensor before its conversion
    }
  const Tensor& embedding = *std::ranges::find(params, "embedding.weight", &NamedParams::value_type::first)->second;
  check<FileError>(!spare_head.defined() || identical(spare_head.to(config.parameters()), embedding),
                   "{}: {} must be the embedding, to which tie_word_embeddings ties it, but differs", where, kHead);
}

NamedTensors pretrained_tensors(const TransformerConfig& config, const NamedParams& params) {
  NamedTensors values;
  for (const PretrainedTensor& tensor : pretrained_tensors(family_of(config), config, params))
    values.emplace(tensor.name, tensor.value());
  return values;
}

void save_pretrained(const TransformerConfig& config, const NamedParams& params, const fs::path& folder,
                     std::uint64_t max_shard_bytes) {
  const std::vector<PretrainedTensor> tensors = pretrained_tensors(family_of(config), config, params);
  std::vector<std::vector<const PretrainedTensor*>> shards;
  std::uint64_t all = 0, filled = 0;
  for (const PretrainedTensor& tensor : tensors) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(tensor.shape().numel()) * size_of(tensor.dtype());
    if (shards.empty() || filled + bytes > max_shard_bytes) shards.emplace_back(), filled = 0;
    shards.back().push_back(&tensor);
    filled += bytes, all += bytes;
  }
  std::error_code error;
  fs::create_directories(folder, error);
  check<FileError>(!error, "save_pretrained: {}: cannot be created: {}", folder.string(), error.message());
  std::map<std::string, std::string> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string file =
        shards.size() == 1 ? kWeights : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    NamedTensors values;
    for (const PretrainedTensor* tensor : shards[i]) {
      values.emplace(tensor->name, tensor->value());
      files.emplace(tensor->name, file);
    }
    save_safetensors(folder / file, values, {{"format", "pt"}});
  }
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically(folder / name, [&](std::ostream& out) { out << text; });
  };
  if (shards.size() > 1) write(kIndex, format_shard_index(files, all));
  write(kConfig, format_pretrained_config(config, params.front().second->dtype()));
  fs::remove(folder / (shards.size() > 1 ? kWeights : kIndex), error);  // of a model saved here before
}

}  // namespace braid::nn::detail

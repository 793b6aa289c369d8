// load_pretrained: every model that it accepts computes, and survives save_pretrained and another load. An input is
// config.json, model.safetensors.index.json or nothing, the header of a shard and its elements, with a zero byte
// between them; the header's length is added here, since few mutations would keep it right.
#include <string_view>

#include <braid/mhc/connection.h>
#include <braid/nn/pretrained/pretrained.h>

#include "target.h"

namespace {

using namespace braid;
namespace fs = std::filesystem;

void write(const fs::path& file, std::string_view bytes) { std::ofstream(file, std::ios::binary) << bytes; }

std::string_view next_part(std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

/// A folder that holds the input.
fs::path folder_of(std::string_view input) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("{}", platform::process_id());
  fs::remove_all(folder);
  fs::create_directory(folder);
  write(folder / "config.json", next_part(input));
  const std::string_view index = next_part(input), header = next_part(input);
  if (!index.empty()) write(folder / "model.safetensors.index.json", index);
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  file.append(header).append(input);
  write(folder / (index.empty() ? "model.safetensors" : "model-1.safetensors"), file);
  return folder;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::accept_or_refuse(size, [&] {
    const fs::path folder = folder_of({reinterpret_cast<const char*>(data), size});
    const nn::Transformer<mhc::Connection> model = nn::load_pretrained(folder, mhc::pretrained_connection);
    nn::KVCache cache = model.make_cache(1);
    model.next_logits(zeros({1, 1}, DType::i32), cache);
    nn::save_pretrained(model, folder / "copy");
    const nn::NamedTensors before = nn::to_tensors(model),
                           after = nn::to_tensors(nn::load_pretrained(folder / "copy", mhc::pretrained_connection));
    fuzz::require(std::ranges::equal(
                      before, after,
                      [](const auto& a, const auto& b) { return a.first == b.first && identical(a.second, b.second); }),
                  "tensors survive a round trip");
  });
}

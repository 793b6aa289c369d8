// load_safetensors: every file that it accepts survives save_safetensors and another load unchanged.
#include <braid/core/files/safetensors.h>

#include "safetensors_mutator.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse(size, [&] {
    const SafetensorsFile file = load_safetensors(fuzz::file_of({data, size}, ".safetensors"));
    const auto copy = std::filesystem::temp_directory_path() / fmt::format("{}.copy", platform::process_id());
    save_safetensors(copy, file.tensors, file.metadata);
    const SafetensorsFile again = load_safetensors(copy);
    fuzz::require(again.metadata == file.metadata, "metadata survive a round trip");
    fuzz::require(std::ranges::equal(
                      again.tensors, file.tensors,
                      [](const auto& a, const auto& b) { return a.first == b.first && identical(a.second, b.second); }),
                  "tensors survive a round trip");
  });
}

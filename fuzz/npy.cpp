// load_npy and load_npz: every file that they accept survives save_npy or save_npz and another load unchanged.
#include <braid/core/files/npy.h>

#include "target.h"

namespace {

using namespace braid;

void check_array(const std::filesystem::path& file, const std::filesystem::path& copy) {
  const Tensor tensor = load_npy(file);
  save_npy(copy, tensor);
  fuzz::require(identical(load_npy(copy), tensor), "an array survives a round trip");
}

void check_archive(const std::filesystem::path& file, const std::filesystem::path& copy, bool compressed) {
  const auto tensors = load_npz(file);
  save_npz(copy, tensors, {.compressed = compressed});
  fuzz::require(std::ranges::equal(
                    load_npz(copy), tensors,
                    [](const auto& a, const auto& b) { return a.first == b.first && identical(a.second, b.second); }),
                "arrays survive a round trip");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path file = fuzz::file_of({data, size}, ".npy");
  const auto copy = std::filesystem::temp_directory_path() / fmt::format("{}.copy", platform::process_id());
  const bool is_archive = size > 0 && data[0] == 'P';
  return fuzz::accept_or_refuse(size, [&] {
    if (is_archive)
      check_archive(file, copy, size % 2 == 0);
    else
      check_array(file, copy);
  });
}

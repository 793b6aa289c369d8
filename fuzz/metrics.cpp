// The lines that a run has written: a resumed run keeps those up to its step.
#include "../examples/common/json_lines.h"

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse([&] {
    const auto path = fuzz::file_of({data, size}, ".jsonl");
    examples::rewind_json_lines(path, 2);
    const auto kept = std::filesystem::file_size(path);
    examples::rewind_json_lines(path, 2);
    fuzz::require(std::filesystem::file_size(path) == kept, "lines that were kept are kept again");
  });
}

// The lines that a run has written: a resumed run keeps those up to its step.
#include "../apps/common/json_lines.h"

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse(size, [&] {
    const std::string kept = apps::json_lines_until(fuzz::file_of({data, size}, ".jsonl"), 2).text;
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(kept.data()), kept.size());
    fuzz::require(apps::json_lines_until(fuzz::file_of(bytes, ".jsonl"), 2).text == kept,
                  "lines that were kept are kept again");
  });
}

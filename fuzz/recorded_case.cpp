// Recorded cases through the modules that they name, as the golden runner does: any case passes or fails.
#include <tests/golden/check.h>
#include <tests/golden/modules.h>

#include "safetensors_mutator.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  static const std::vector<golden::Module> modules = golden::all_modules();
  return fuzz::accept_or_refuse([&] {
    golden::check_case(nn::load_case(fuzz::file_of({data, size}, ".safetensors")), modules);
  });
}

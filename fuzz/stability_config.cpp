// Configurations of the stability experiment, TOML.
#include "../apps/stability/config.h"

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse(size, [&] { stability::read_config(fuzz::file_of({data, size}, ".toml")); });
}

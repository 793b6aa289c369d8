// What stands for the parts of core/files that read and write JSON where nlohmann-json is absent.
#include <braid/core/error.h>
#include <braid/core/files/detail/safetensors_header.h>

namespace braid::detail {

SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string&, std::uint64_t) {
  throw MissingLibrary(where, "nlohmann-json");
}
std::string format_safetensors_header(const SafetensorsHeader&) {
  throw MissingLibrary("save_safetensors", "nlohmann-json");
}

}  // namespace braid::detail

// What stands for the parts of core/files that read and write JSON where nlohmann-json is absent.
#include <braid/core/detail/missing_library.h>
#include <braid/core/files/detail/safetensors_header.h>

namespace braid::detail {

SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string&, std::uint64_t) {
  throw_missing(where.c_str(), "nlohmann-json");
}
std::string format_safetensors_header(const SafetensorsHeader&) { throw_missing("save_safetensors", "nlohmann-json"); }

}  // namespace braid::detail

#include <braid/mhc/path.h>

#include <array>
#include <cstdlib>

#include <braid/core/detail/enum_named.h>

namespace braid::mhc {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"fused", "reference"};  // in the order of Path

}  // namespace

std::string_view name(Path path) { return kNames[static_cast<std::size_t>(path)]; }

Path path_named(std::string_view name) { return braid::detail::enum_named<Path>("path_named: path", kNames, name); }

Path default_path() {
  static const char* const variable = std::getenv("BRAID_MHC_PATH");
  static const Path path =
      variable == nullptr ? Path::fused : braid::detail::enum_named<Path>("BRAID_MHC_PATH", kNames, variable);
  return path;
}

}  // namespace braid::mhc

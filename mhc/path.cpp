#include <braid/mhc/path.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <braid/core/error.h>

namespace braid::mhc {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"automatic", "reference", "fused"};  // in the order of Path

Path path_from_environment() {
  const char* variable = std::getenv("BRAID_MHC_PATH");
  return variable == nullptr ? Path::automatic : path_named(variable);
}

}  // namespace

Path path_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  check_value(found != kNames.end(), "path_named: path must be automatic, reference or fused but is '{}'", name);
  return static_cast<Path>(found - kNames.begin());
}

std::string_view name(Path path) { return kNames[static_cast<std::size_t>(path)]; }

Path choose_path(Path wanted) {
  static const Path forced = path_from_environment();
  const Path path = forced != Path::automatic ? forced : wanted;
  return path == Path::automatic ? Path::fused : path;
}

}  // namespace braid::mhc

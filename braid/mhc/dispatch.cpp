#include <braid/mhc/dispatch.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <braid/core/error.h>

namespace braid::mhc {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"automatic", "reference", "fused"};  // in the order of Path

Path path_from_environment() {
  const char* variable = std::getenv("BRAID_MHC_PATH");
  if (variable == nullptr) return Path::automatic;
  const auto found = std::ranges::find(kNames, std::string_view(variable));
  check_value(found != kNames.end(), "BRAID_MHC_PATH: expected automatic, reference or fused but it is '{}'", variable);
  return static_cast<Path>(found - kNames.begin());
}

}  // namespace

std::string_view name(Path path) { return kNames[static_cast<std::size_t>(path)]; }

Path choose_path(Path wanted) {
  static const Path forced = path_from_environment();
  const Path path = forced != Path::automatic ? forced : wanted;
  return path == Path::automatic ? Path::fused : path;
}

}  // namespace braid::mhc

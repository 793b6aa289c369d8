#pragma once
#include <string_view>

namespace braid::mhc {

/// Which implementation of a connection runs. Both compute the same to rounding, forward and backward.
enum class Path {
  fused,      ///< kernels with hand-written vjps
  reference,  ///< composed of ops: the source of truth
};

/// `fused`, `reference`.
std::string_view name(Path path);
/// The path of that name. Throws ValueError listing the names.
Path path_named(std::string_view name);

/// The path of settings that do not choose one: that which the environment variable BRAID_MHC_PATH names, read once, or
/// the fused one. Throws ValueError when the variable names no path.
Path default_path();

}  // namespace braid::mhc

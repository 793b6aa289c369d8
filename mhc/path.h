#pragma once
#include <string_view>

namespace braid::mhc {

/// Which implementation of a connection runs: the one composed of ops, which is the source of truth, or the fused
/// kernels, which match it to rounding.
enum class Path { automatic, reference, fused };

/// `automatic`, `reference`, `fused`.
std::string_view name(Path path);
/// The path of that name. Throws ValueError listing the names.
Path path_named(std::string_view name);

/// What runs when a module asks for `wanted`: `reference` or `fused`, never `automatic`. The environment variable
/// BRAID_MHC_PATH, read once, overrules every module, for debugging. `automatic` is the fused path.
/// Throws ValueError when the variable names no path.
Path choose_path(Path wanted);

}  // namespace braid::mhc

#pragma once
#include <string>
#include <string_view>

namespace braid {

/// braid's version, such as "0.2.0".
std::string_view version();

/// For bug reports, a line each: braid's version and kind of build, the compiler, the libraries that braid uses, the
/// instruction set in use. Throws ValueError as instruction_set() does.
std::string build_info();

}  // namespace braid

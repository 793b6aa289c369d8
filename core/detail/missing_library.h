#pragma once
#include <braid/core/error.h>

namespace braid::detail {

/// Throws MissingLibrary for a function that needs `library`.
[[noreturn]] inline void throw_missing(const char* function, const char* library) {
  throw MissingLibrary(fmt::format("{}: this build of braid is without {}, which it needs", function, library));
}

}  // namespace braid::detail

#pragma once
#include <memory>

namespace braid::platform {

/// Holds all signals back from this thread, and from those that it starts, until the result is destroyed.
std::shared_ptr<void> hold_signals();

}  // namespace braid::platform

#pragma once
#include <string>

namespace braid::platform {

/// `Linux 6.1.0 x86_64`
std::string system_name();

}  // namespace braid::platform

#pragma once
#include <string>

namespace braid::platform {

std::string host_name();
std::string system_name();     ///< `Linux 6.1.0 x86_64`
std::string processor_name();  ///< as its maker calls it; `unknown` if the system does not say
/// The processors that this process may use, as a 0 or 1 for each; empty where processes may use all of them.
std::string usable_processors();
/// An identifier that differs between machines, and between boots of one.
std::string boot_id();

}  // namespace braid::platform

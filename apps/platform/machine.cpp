#include "machine.h"

#include <sys/utsname.h>

namespace braid::platform {

std::string system_name() {
  utsname system{};
  uname(&system);
  return std::string(system.sysname) + " " + system.release + " " + system.machine;
}

}  // namespace braid::platform

#pragma once
#include <braid/dist/communicator.h>

namespace braid::dist {

/// All ranks of this test program: a process has one Communicator.
Communicator& ranks();

}  // namespace braid::dist

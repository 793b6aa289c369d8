#include "signals.h"

#include <signal.h>

namespace braid::platform {

void ignore_closed_pipes() { signal(SIGPIPE, SIG_IGN); }
void ignore_file_size_limit() { signal(SIGXFSZ, SIG_IGN); }

}  // namespace braid::platform

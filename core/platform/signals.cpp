#include <braid/core/platform/signals.h>

#include <signal.h>

namespace braid::platform {

std::shared_ptr<void> hold_signals() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return {nullptr, [before](void*) { pthread_sigmask(SIG_SETMASK, &before, nullptr); }};
}

}  // namespace braid::platform

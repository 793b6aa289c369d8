#include "signals.h"

#include <signal.h>

namespace braid::platform {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

void ignore_closed_pipes() { signal(SIGPIPE, SIG_IGN); }
void ignore_file_size_limit() { signal(SIGXFSZ, SIG_IGN); }

struct HeldSignals::Sets {
  sigset_t held, before;
};

HeldSignals::HeldSignals(Which which) : sets_(std::make_unique<Sets>()) {
  sigset_t& held = sets_->held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(signal)) sigaddset(&held, signal);
  if (which == Which::interruptions_and_ends_of_children) {
    // While it is ignored, waitpid finds no children, and macOS ignores it where it has no handler.
    signal(SIGCHLD, [](int) {});
    sigaddset(&held, SIGCHLD);
  }
  pthread_sigmask(SIG_BLOCK, &held, &sets_->before);
}

HeldSignals::~HeldSignals() { release(); }

void HeldSignals::release() const { pthread_sigmask(SIG_SETMASK, &sets_->before, nullptr); }

HeldSignals::Signal HeldSignals::next() const {
  int signal = 0;
  sigwait(&sets_->held, &signal);
  return signal == SIGCHLD ? Signal::end_of_child : Signal::interruption;
}

}  // namespace braid::platform

#include "interruption.h"

#include <signal.h>

#include <atomic>
#include <thread>

namespace braid::train_lm {
namespace {

std::atomic<bool> has_come = false;

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

void catch_interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(signal)) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // threads that start later inherit it
  std::thread([signals] {
    for (int signal = 0; sigwait(&signals, &signal) == 0;) has_come = true;
  }).detach();
}

bool interrupted() { return has_come; }

}  // namespace braid::train_lm

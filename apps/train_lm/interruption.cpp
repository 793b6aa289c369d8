#include "interruption.h"

#include <atomic>
#include <thread>

#include "../platform/signals.h"

namespace braid::train_lm {
namespace {

std::atomic<bool> has_come = false;

}  // namespace

void catch_interrupts() {
  using platform::HeldSignals;
  static const auto* const held = new HeldSignals(HeldSignals::Which::interruptions);  // to the end of the program
  std::thread([] {
    while (true) has_come = held->next() == HeldSignals::Signal::interruption;
  }).detach();
}

bool interrupted() { return has_come; }

}  // namespace braid::train_lm

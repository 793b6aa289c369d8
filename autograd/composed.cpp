#include <braid/autograd/composed.h>

namespace braid {

Composed::Composed(Ops ops) : before_(current()) { (ops == Ops::all ? current().all : current().connections) = true; }

bool Composed::active(Ops ops) { return current().all || (ops == Ops::connections && current().connections); }

Composed::State& Composed::current() {
  thread_local State state;
  return state;
}

}  // namespace braid

#include <braid/autograd/composed.h>

namespace braid {

Composed::Composed(Ops ops) : before_(current()) {
  (ops == Ops::connections ? current().connections : current().all) = true;
}

bool Composed::active(Ops ops) {
  const auto& [all, connections, higher_order] = current();
  return all || (ops == Ops::connections && connections) || (ops != Ops::with_rule && higher_order);
}

Composed::State& Composed::current() {
  thread_local State state;
  return state;
}

}  // namespace braid

#include <braid/core/batch_invariant.h>

namespace braid {
namespace {

thread_local int scopes = 0;

}  // namespace

BatchInvariant::BatchInvariant() { ++scopes; }
BatchInvariant::~BatchInvariant() { --scopes; }
bool BatchInvariant::active() { return scopes > 0; }

void detail::set_batch_invariant(bool active) { scopes = active ? 1 : 0; }

}  // namespace braid

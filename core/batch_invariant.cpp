#include <braid/core/batch_invariant.h>

namespace braid {
namespace {

thread_local int scopes = 0;

}  // namespace

BatchInvariant::BatchInvariant() { ++scopes; }
BatchInvariant::~BatchInvariant() { --scopes; }
bool BatchInvariant::active() { return scopes > 0; }

}  // namespace braid

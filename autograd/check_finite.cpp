#include <braid/autograd/check_finite.h>

namespace braid {
namespace {

thread_local int scopes = 0;

}  // namespace

CheckFinite::CheckFinite() { ++scopes; }
CheckFinite::~CheckFinite() { --scopes; }
bool CheckFinite::active() { return scopes > 0; }

}  // namespace braid

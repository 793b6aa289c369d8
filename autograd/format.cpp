#include <braid/autograd/format.h>

#include <ostream>

namespace braid {

std::string to_string(const Var& x, const FormatOptions& options) {
  return to_string(x.value(), options) + (x.requires_grad() ? ", on a tape" : "");
}

std::ostream& operator<<(std::ostream& out, const Var& x) { return out << to_string(x); }

}  // namespace braid

#include <braid/autograd/format.h>

#include <ostream>

#include <fmt/format.h>

namespace braid {

std::string to_string(const Var& x, const FormatOptions& options) {
  return to_string(x.value(), options) + (x.requires_grad() ? ", on a tape" : "");
}

std::ostream& operator<<(std::ostream& out, const Var& x) { return out << to_string(x); }

}  // namespace braid

fmt::format_context::iterator fmt::formatter<braid::Var>::format(const braid::Var& x,
                                                                 fmt::format_context& context) const {
  return fmt::formatter<std::string>::format(braid::to_string(x), context);
}

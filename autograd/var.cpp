#include <braid/autograd/var.h>

namespace braid {

Var::Var(const Var&) noexcept = default;
Var::Var(Var&&) noexcept = default;
Var& Var::operator=(const Var&) & noexcept = default;
Var& Var::operator=(Var&&) & noexcept = default;
Var::~Var() = default;

Var::operator Tensor() const {
  check<Error>(!requires_grad(),
               "Var: this {} variable is on a tape, but a Tensor has no gradient; write detach(x) or x.value()",
               shape());
  return value_;
}

Tensor& Var::mutable_value() & {
  check<Error>(!requires_grad(), "Var::mutable_value: this variable is on a tape");
  return value_;
}

}  // namespace braid

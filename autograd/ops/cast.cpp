#include <braid/autograd/ops/cast.h>

namespace braid {

Var Var::to(DType dtype) const {
  if (this->dtype() == dtype) return *this;
  Tensor y = value_.to(dtype);
  if (dtype == DType::i32) return y;
  return record("cast", std::move(y), {*this}, [from = this->dtype()](const Var& dy) { return dy.to(from); });
}

}  // namespace braid

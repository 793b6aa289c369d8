#include <braid/autograd/ops/cast.h>

namespace braid {

Var cast(const Var& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = x.value().to(dtype);
  if (dtype == DType::i32) return y;
  return record("cast", std::move(y), {x}, [from = x.dtype()](const Var& dy) { return cast(dy, from); });
}

Var Var::to(DType dtype) const { return cast(*this, dtype); }

}  // namespace braid

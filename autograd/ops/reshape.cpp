#include <braid/autograd/ops/reshape.h>

namespace braid {

static Var record_view(const char* op, Tensor y, const Var& x) {
  return record(op, std::move(y), {x}, [shape = x.shape()](const Var& dy) { return reshape(dy, shape); });
}

Var Var::reshape(List<std::int64_t> sizes) const { return record_view("reshape", value_.reshape(sizes), *this); }

Var Var::expand_dims(int axis) const { return record_view("expand_dims", value_.expand_dims(axis), *this); }

Var Var::squeeze(int axis) const { return record_view("squeeze", value_.squeeze(axis), *this); }

}  // namespace braid

#include <braid/autograd/ops/reshape.h>

namespace braid {
namespace {

Var record_view(const char* op, Tensor y, const Var& x) {
  return record(op, std::move(y), {x}, [shape = x.shape()](const Var& dy) { return reshape(dy, shape); });
}

}  // namespace

Var reshape(const Var& x, const Shape& shape) { return record_view("reshape", x.value().reshape(shape), x); }

Var reshape(const Var& x, std::span<const std::int64_t> sizes) {
  return record_view("reshape", x.value().reshape(sizes), x);
}

Var expand_dims(const Var& x, int axis) { return record_view("expand_dims", x.value().expand_dims(axis), x); }

Var squeeze(const Var& x, int axis) { return record_view("squeeze", x.value().squeeze(axis), x); }

Var Var::reshape(const Shape& shape) const { return braid::reshape(*this, shape); }

Var Var::reshape(std::span<const std::int64_t> sizes) const { return braid::reshape(*this, sizes); }

Var Var::expand_dims(int axis) const { return braid::expand_dims(*this, axis); }

Var Var::squeeze(int axis) const { return braid::squeeze(*this, axis); }

}  // namespace braid

#include <braid/autograd/ops/slice.h>

#include <braid/autograd/detail/record_view.h>

namespace braid {

Var slice(const Var& x, int axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  return detail::record_view("slice", x, [=](const Tensor& x) { return x.slice(axis, begin, end, step); });
}

Var select(const Var& x, int axis, std::int64_t position) {
  return detail::record_view("select", x, [=](const Tensor& x) { return x.select(axis, position); });
}

Var Var::slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step) const {
  return braid::slice(*this, axis, begin, end, step);
}

Var Var::select(int axis, std::int64_t position) const { return braid::select(*this, axis, position); }

Var Var::operator[](std::int64_t position) const { return select(0, position); }

}  // namespace braid

#include <braid/autograd/ops/slice.h>

#include <braid/autograd/detail/tape_state.h>

namespace braid {

Var Var::slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step) const {
  return detail::record_view("slice", *this, [=](const Tensor& x) { return x.slice(axis, begin, end, step); });
}

Var Var::select(int axis, std::int64_t position) const {
  return detail::record_view("select", *this, [=](const Tensor& x) { return x.select(axis, position); });
}

Var Var::operator[](std::int64_t position) const { return select(0, position); }

}  // namespace braid

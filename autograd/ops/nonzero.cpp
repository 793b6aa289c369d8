#include <braid/autograd/ops/nonzero.h>

namespace braid {

Tensor nonzero(const Var& x) {
  const Shape& shape = x.shape();
  for (const std::int64_t size : shape)
    check_shape(size <= std::int64_t{1} << 31, "nonzero: an axis of x {} is too long for i32", shape);
  const Tensor elements = x.value().contiguous();
  std::vector<std::int64_t> places;  // row-major
  dispatch(x.dtype(), [&](auto zero) {
    const auto* first = elements.data<decltype(zero)>();
    for (std::int64_t i = 0; i < x.numel(); ++i)
      if (first[i] != zero) places.push_back(i);
  });
  Tensor y({std::ssize(places), shape.rank()}, DType::i32);
  std::int32_t* row = y.mutable_data<std::int32_t>();
  for (std::int64_t place : places) {
    for (int axis = shape.rank() - 1; axis >= 0; place /= shape[axis--])
      row[axis] = static_cast<std::int32_t>(place % shape[axis]);
    row += shape.rank();
  }
  return y;
}

}  // namespace braid

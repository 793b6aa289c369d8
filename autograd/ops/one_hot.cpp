#include <braid/autograd/ops/one_hot.h>

#include <braid/core/detail/indexing.h>

namespace braid {

Tensor one_hot(const Tensor& ids, std::int64_t classes, DType dtype) {
  check_shape(ids.rank() < Shape::kMaxRank, "one_hot: ids must have at most {} axes but have shape {}",
              Shape::kMaxRank - 1, ids.shape());
  check_value(classes >= 0, "one_hot: classes must not be negative but are {}", classes);
  detail::check_ids("one_hot", ids, 0, classes);
  const Tensor list = ids.contiguous();
  Tensor y = zeros(ids.shape().concat({classes}), dtype);
  dispatch(dtype, [&]<class T>(T) {
    T* rows = y.mutable_data<T>();
    for (std::int64_t i = 0; i < ids.numel(); ++i) rows[i * classes + list.data<std::int32_t>()[i]] = static_cast<T>(1);
  });
  return y;
}

}  // namespace braid

#include <braid/autograd/ops/embedding.h>

#include <braid/autograd/ops/detail/linear_map.h>
#include <braid/core/detail/indexing.h>

namespace braid {

Var embedding(const Var& weight, const Tensor& ids) {
  check_shape(weight.rank() == 2, "embedding: weight must have shape [V, C] but has {}", weight.shape());
  check_shape(ids.rank() < Shape::kMaxRank, "embedding: ids must have at most {} axes but have shape {}",
              Shape::kMaxRank - 1, ids.shape());
  detail::check_ids("embedding", ids, 0, weight.size(0));
  return detail::linear_map(
      "embedding", weight,
      [ids](const Tensor& weight) {
        return detail::index_select(weight, 0, ids).reshape(ids.shape().concat({weight.size(1)}));
      },
      [ids, shape = weight.shape()](const Tensor& dy) { return detail::index_add(shape, 0, ids, dy); });
}

}  // namespace braid

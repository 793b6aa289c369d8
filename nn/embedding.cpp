#include <braid/nn/embedding.h>

#include <braid/autograd/ops.h>
#include <braid/nn/init.h>

namespace braid::nn {

Embedding::Embedding(std::int64_t count, std::int64_t channels, Rng& rng, DType dtype) {
  check_value(count >= 1 && channels >= 1, "Embedding: count and channels must be at least 1 but are {} and {}", count,
              channels);
  weight = init::normal({count, channels}, 1, rng, dtype);
}

Var Embedding::operator()(const Tensor& ids) const {
  const Var rows = embedding(weight, ids);
  if (!padding || !rows.requires_grad()) return rows;
  return where(ids.reshape(ids.shape().inserted(ids.rank(), 1)) == static_cast<double>(*padding), detach(rows), rows);
}

}  // namespace braid::nn

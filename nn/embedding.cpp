#include <braid/nn/embedding.h>

#include <braid/autograd/ops/embedding.h>
#include <braid/nn/init.h>

namespace braid::nn {

Embedding::Embedding(std::int64_t count, std::int64_t channels, Rng& rng, DType dtype) {
  check_value(count >= 1 && channels >= 1, "Embedding: count and channels must be at least 1 but are {} and {}", count,
              channels);
  weight = init::normal({count, channels}, 1, rng, dtype);
}

Var Embedding::operator()(const Tensor& ids) const { return embedding(weight, ids); }

}  // namespace braid::nn

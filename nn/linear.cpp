#include <braid/nn/linear.h>

#include <cmath>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/linear.h>
#include <braid/nn/init.h>

namespace braid::nn {

Linear::Linear(std::int64_t in, std::int64_t out, Rng& rng, const LinearSettings& settings) {
  check_value(in >= 1 && out >= 1, "Linear: in and out must be at least 1 but are {} and {}", in, out);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  weight = init::uniform({out, in}, bound, rng, settings.dtype);
  if (settings.bias) bias = init::uniform({out}, bound, rng, settings.dtype);
}

Var Linear::operator()(const Var& x) const {
  const Var y = linear(x, weight, bias);
  return lora ? y + lora->scale * linear(linear(x, lora->a), lora->b) : y;
}

}  // namespace braid::nn

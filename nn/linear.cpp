#include <braid/nn/linear.h>

#include <cmath>
#include <vector>

#include <braid/autograd/ops.h>
#include <braid/nn/init.h>

namespace braid::nn {

void WeightAndBias::draw(const Shape& shape, Rng& rng, const LinearSettings& settings) {
  const double bound = 1 / std::sqrt(static_cast<double>(shape.axes(1, shape.rank()).numel()));
  weight = init::uniform(shape, bound, rng, settings.dtype);
  if (settings.bias) bias = init::uniform({shape[0]}, bound, rng, settings.dtype);
}

Linear::Linear(std::int64_t in, std::int64_t out, Rng& rng, const LinearSettings& settings) {
  check_value(in >= 1 && out >= 1, "Linear: in and out must be at least 1 but are {} and {}", in, out);
  draw({out, in}, rng, settings);
}

Var Linear::operator()(const Var& x) const {
  const Var y = linear(x, weight, bias);
  return lora ? y + lora->scale * linear(linear(x, lora->a), lora->b) : y;
}

GroupedLinear::GroupedLinear(int groups, std::int64_t in, std::int64_t out, Rng& rng, DType dtype) : groups(groups) {
  check_value(groups >= 1 && in >= 1 && out >= 1,
              "GroupedLinear: groups, in and out must be at least 1 but are {}, {} and {}", groups, in, out);
  weight = init::uniform({groups * out, in}, 1 / std::sqrt(static_cast<double>(in)), rng, dtype);
}

Var GroupedLinear::operator()(const Var& x) const {
  const std::int64_t in = weight.size(1), out = weight.size(0) / groups;
  check_shape(x.rank() >= 1 && x.size(-1) == groups * in, "GroupedLinear: x must have shape [..., {}] but has {}",
              groups * in, x.shape());
  std::vector<Var> parts;
  for (std::int64_t g = 0; g < groups; ++g)
    parts.push_back(linear(slice(x, -1, g * in, (g + 1) * in), slice(weight, 0, g * out, (g + 1) * out)));
  return concat(parts, -1);
}

}  // namespace braid::nn

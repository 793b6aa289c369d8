#include <braid/nn/conv2d.h>

#include <cmath>

#include <braid/nn/init.h>

namespace braid::nn {

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Size2d size, Rng& rng, const Conv2dSettings& settings,
               const LinearSettings& parameters)
    : settings(settings) {
  const std::int64_t groups = settings.groups;
  check_value(in >= 1 && out >= 1 && size.h >= 1 && size.w >= 1,
              "Conv2d: in, out and size must be at least 1 but are {}, {} and {} x {}", in, out, size.h, size.w);
  check_value(groups >= 1 && in % groups == 0 && out % groups == 0,
              "Conv2d: groups must divide the {} inputs and {} outputs but is {}", in, out, groups);
  const double bound = 1 / std::sqrt(static_cast<double>(in / groups * size.h * size.w));
  weight = init::uniform({out, in / groups, size.h, size.w}, bound, rng, parameters.dtype);
  if (parameters.bias) bias = init::uniform({out}, bound, rng, parameters.dtype);
}

}  // namespace braid::nn

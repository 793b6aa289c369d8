#include <braid/nn/conv2d.h>

namespace braid::nn {

Conv2d::Conv2d(std::int64_t in, std::int64_t out, Size2d size, Rng& rng, const Conv2dSettings& settings,
               const LinearSettings& parameters)
    : settings(settings) {
  const std::int64_t groups = settings.groups;
  check_value(in >= 1 && out >= 1 && size.h >= 1 && size.w >= 1,
              "Conv2d: in, out and size must be at least 1 but are {}, {} and {} x {}", in, out, size.h, size.w);
  check_value(groups >= 1 && in % groups == 0 && out % groups == 0,
              "Conv2d: groups must divide the {} inputs and {} outputs but is {}", in, out, groups);
  draw({out, in / groups, size.h, size.w}, rng, parameters);
}

}  // namespace braid::nn

#include <braid/nn/conv1d.h>

namespace braid::nn {

Conv1d::Conv1d(std::int64_t in, std::int64_t out, std::int64_t taps, Rng& rng, const Conv1dSettings& settings,
               const LinearSettings& parameters)
    : settings(settings) {
  const std::int64_t groups = settings.groups;
  check_value(in >= 1 && out >= 1 && taps >= 1, "Conv1d: in, out and taps must be at least 1 but are {}, {} and {}", in,
              out, taps);
  check_value(groups >= 1 && in % groups == 0 && out % groups == 0,
              "Conv1d: groups must divide the {} inputs and {} outputs but is {}", in, out, groups);
  draw({out, in / groups, taps}, rng, parameters);
}

Var Conv1d::operator()(const Var& x) const { return conv1d(x, weight, bias, settings); }

}  // namespace braid::nn

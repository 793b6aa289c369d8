#include <braid/autograd/ops.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

std::optional<Settings> axes(Shapes x, Rng& rng) { return Settings{list(some_axes(x[0], rng))}; }

std::optional<Settings> axes_and_keep(Shapes x, Rng& rng) {
  return Settings{list(some_axes(x[0], rng)), truth(rng.below(2) == 0)};
}

/// The same where at least one element is reduced to each result.
std::optional<Settings> axes_with_elements(Shapes x, Rng& rng) {
  const std::vector<std::int64_t> axes = some_axes(x[0], rng);
  for (const std::int64_t axis : axes)
    if (x[0][static_cast<int>(axis)] == 0) return std::nullopt;
  if (axes.empty() && x[0].numel() == 0) return std::nullopt;
  return Settings{list(axes), truth(rng.below(2) == 0)};
}

/// The same where at least two are.
std::optional<Settings> axes_with_spread(Shapes x, Rng& rng) {
  std::optional<Settings> settings = axes_with_elements(x, rng);
  if (!settings || x[0].numel() < 2 * reduced_shape("var", x[0], (*settings)[0].axes(), false).numel())
    return std::nullopt;
  settings->push_back(real(pick({0, 1}, rng)));
  return settings;
}

std::optional<Settings> one_axis(Shapes x, Rng& rng) { return Settings{axis_of(x[0], rng)}; }

}  // namespace

std::vector<Op> reduction_ops() {
  return {
      {"sum", one(), axes_and_keep, [](Vars x, const Settings& s) { return sum(x[0], s[0].axes(), s[1].number != 0); }},
      {"mean", one(), axes_with_elements,
       [](Vars x, const Settings& s) { return mean(x[0], s[0].axes(), s[1].number != 0); }},
      {"max", one(), axes_with_elements,
       [](Vars x, const Settings& s) { return max(x[0], s[0].axes(), s[1].number != 0); }},
      {"min", one(), axes_with_elements,
       [](Vars x, const Settings& s) { return min(x[0], s[0].axes(), s[1].number != 0); }},
      {"var", one(), axes_with_spread,
       [](Vars x, const Settings& s) { return var(x[0], s[0].axes(), s[1].number != 0, s[2].number); }},
      {"stddev", one(), axes_with_spread,
       [](Vars x, const Settings& s) { return stddev(x[0], s[0].axes(), s[1].number != 0, s[2].number); }},
      {"norm", one(), axes_and_keep,
       [](Vars x, const Settings& s) { return norm(x[0], s[0].axes(), s[1].number != 0); }},
      {"cumsum", one(has_axes), one_axis, [](Vars x, const Settings& s) { return cumsum(x[0], s[0].integer()); }},
      {"linear_scan",
       [](Builder& b) {
         const int x = b.any(has_axes);
         return x == kNone ? std::vector{kNone} : std::vector{b.of_shape(b.shape(x)), x};
       },
       one_axis, [](Vars x, const Settings& s) { return linear_scan(x[0], x[1], static_cast<int>(s[0].integer())); }},
      {"logsumexp", one(), axes_with_elements,
       [](Vars x, const Settings& s) { return logsumexp(x[0], s[0].axes(), s[1].number != 0); }},
      {"softmax", one(), axes, [](Vars x, const Settings& s) { return softmax(x[0], s[0].axes()); }},
      {"log_softmax", one(), axes, [](Vars x, const Settings& s) { return log_softmax(x[0], s[0].axes()); }},
  };
}

}  // namespace braid::programs

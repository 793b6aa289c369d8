#include <algorithm>

#include <braid/autograd/ops.h>
#include <braid/mhc/ops/mhc_read.h>
#include <braid/mhc/ops/projections.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

using mhc::Mixing;

/// Every mixing of up to three streams.
const std::vector<Mixing>& mixings() {
  static const std::vector<Mixing> all = [] {
    std::vector<Mixing> made;
    for (std::int64_t n = 1; n <= 3; ++n)
      for (const std::string_view name : mhc::mixing_names(n)) made.emplace_back(name, n);
    return made;
  }();
  return all;
}

const Mixing& any_mixing(Rng& rng) { return mixings()[static_cast<std::size_t>(rng.below(std::ssize(mixings())))]; }

/// Name and n of one that fits.
std::optional<Settings> mixing_that(const std::function<bool(const Mixing&)>& fits, Rng& rng) {
  const auto start = rng.below(std::ssize(mixings()));
  for (std::int64_t i = 0; i < std::ssize(mixings()); ++i) {
    const Mixing& mixing = mixings()[static_cast<std::size_t>((start + i) % std::ssize(mixings()))];
    if (fits(mixing)) return Settings{{std::string(mixing.name())}, integer(mixing.n())};
  }
  return std::nullopt;
}

std::vector<int> logits(Builder& b) {
  const std::int64_t m = any_mixing(b.rng()).logits();
  return {b.bounded(b.of_shape(b.rng().below(2) == 0 ? Shape{m} : Shape{1 + b.rng().below(2), m}), 4)};
}

std::optional<Settings> mixing_and_form(Shapes x, Rng& rng) {
  auto settings = mixing_that([&](const Mixing& m) { return m.logits() == x[0][-1]; }, rng);
  if (settings) settings->push_back(form(rng));
  return settings;
}

std::vector<int> matrices(Builder& b) {
  const std::int64_t n = 1 + b.rng().below(3);
  return {b.bounded(b.of_shape(b.rng().below(2) == 0 ? Shape{n, n} : Shape{1 + b.rng().below(2), n, n}), 4)};
}

std::optional<Settings> sinkhorn_settings(Shapes x, Rng& rng) {
  if (x[0].rank() < 2 || x[0][-1] != x[0][-2] || x[0][-1] == 0) return std::nullopt;
  const Setting exact = rng.below(2) == 0 ? Setting{"mhc::Marginal::columns", 0} : Setting{"mhc::Marginal::rows", 1};
  return Settings{integer(1 + rng.below(6)), exact, form(rng)};
}

std::optional<Settings> temperature(Shapes, Rng& rng) { return Settings{real(pick({0.5, 1, 2}, rng))}; }

std::optional<Settings> epsilon_and_temperature(Shapes x, Rng& rng) {
  if (x[0][-1] == 0) return std::nullopt;
  return Settings{real(pick({0, 0.25}, rng)), real(pick({0.5, 1, 2}, rng))};
}

std::optional<Settings> nothing_for_some(Shapes x, Rng&) {
  return x[0][-1] == 0 ? std::nullopt : std::optional(Settings{});
}

/// phi, alpha, bias and x for the maps of up to three streams.
std::vector<int> map_parameters(Builder& b) {
  const Mixing& mixing = any_mixing(b.rng());
  const std::int64_t n = mixing.n(), channels = 1 + b.rng().below(2), columns = 2 * n + mixing.logits();
  return {b.of_shape({n * channels, columns}), b.of_shape({mixing.logits() > 0 ? 3 : 2}), b.of_shape({columns}),
          b.of_shape(b.rng().below(2) == 0 ? Shape{n, channels} : Shape{2, n, channels})};
}

std::optional<Settings> mixing_and_map(Shapes x, Rng& rng) {
  if (x[3].rank() < 2) return std::nullopt;
  const auto fits = [&](const Mixing& m) {
    return m.n() == x[3][-2] && x[2] == Shape{2 * m.n() + m.logits()} && x[1] == Shape{m.logits() > 0 ? 3 : 2};
  };
  auto settings = mixing_that(fits, rng);
  const bool constant = x[2] == Shape{2 * x[3][-2]};  // then h_res is constant, and noise cannot estimate its rounding
  if (settings)
    settings->push_back(std::vector<Setting>{{"h_pre", 0}, {"h_post", 1}, {"h_res", 2}}[rng.below(constant ? 2 : 3)]);
  return settings;
}

Var one_map(Vars x, const Settings& s) {
  const Mixing mixing(s[0].code, s[1].integer());
  const mhc::StreamMaps maps = mhc::compose_maps({x[0], x[1], x[2], mixing, 1e-5}, x[3]);
  return s[2].integer() == 0 ? maps.h_pre : s[2].integer() == 1 ? maps.h_post : maps.h_res;
}

}  // namespace

std::vector<Op> mixing_ops() {
  return {
      {"Mixing", logits, mixing_and_form,
       [](Vars x, const Settings& s) { return in_form(s[2], [&] { return Mixing(s[0].code, s[1].integer())(x[0]); }); },
       "#2([&] { return mhc::Mixing(\"#0\", #1)($0); })"},
      {"compose_maps", map_parameters, mixing_and_map, one_map,
       "mhc::compose_maps({$0, $1, $2, mhc::Mixing(\"#0\", #1), 1e-5}, $3).#2"},
      {"sinkhorn_knopp", matrices, sinkhorn_settings,
       [](Vars x, const Settings& s) {
         return in_form(s[2], [&] {
           return mhc::sinkhorn_knopp(x[0], s[0].integer(), static_cast<mhc::Marginal>(s[1].integer()));
         });
       },
       "#2([&] { return mhc::sinkhorn_knopp($0, #0, #1); })"},
      {"doubly_stochastic", matrices, sinkhorn_settings,
       [](Vars x, const Settings& s) {
         return in_form(s[2], [&] { return mhc::doubly_stochastic(x[0], 2, s[0].integer()); });
       },
       "#2([&] { return mhc::doubly_stochastic($0, 2, #0); })"},
      {"simplex_softmax", one_within(20, has_axes), temperature,
       [](Vars x, const Settings& s) { return mhc::simplex_softmax(x[0], s[0].number); },
       "mhc::simplex_softmax($0, #0)"},
      {"identity_preserving", one_within(20, has_axes), epsilon_and_temperature,
       [](Vars x, const Settings& s) { return mhc::identity_preserving(x[0], s[0].number, s[1].number); },
       "mhc::identity_preserving($0, #0, #1)"},
      {"simplex_projection", one(has_axes), nothing_for_some,
       [](Vars x, const Settings&) { return mhc::simplex_projection(x[0]); }, "mhc::simplex_projection($0)"},
  };
}

}  // namespace braid::programs

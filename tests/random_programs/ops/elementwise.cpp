#include <braid/autograd/ops.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

std::optional<Settings> a_number(Shapes, Rng& rng) { return Settings{number(rng)}; }
std::optional<Settings> a_divisor(Shapes, Rng& rng) { return Settings{real(pick({-2, -0.5, 0.75, 3}, rng))}; }

std::optional<Settings> bounds(Shapes, Rng& rng) {
  const Setting low = number(rng);
  return Settings{low, real(low.number + static_cast<double>(rng.below(9)) / 4)};
}

/// A mask for the first operand, of its shape or of a smaller one.
std::optional<Settings> mask(Shapes x, Rng& rng) {
  const Shape& shape = x[0];
  return Settings{ids(randint(0, 2, shape.rank() > 0 && rng.below(2) == 0 ? shape.without(0) : shape, rng))};
}

std::vector<int> divided(Builder& b) {
  const std::vector<int> x = pair(b);
  return {x[0], x[1] == kNone ? kNone : b.away_from_zero(x[1])};
}

std::vector<int> powers(Builder& b) {
  const std::vector<int> x = pair(b);
  return {b.positive(x[0]), b.bounded(x[1], 3)};
}

std::vector<Op> arithmetic_ops() {
  return {
      {"add", pair, none, [](Vars x, const Settings&) { return x[0] + x[1]; }},
      {"add", one(), a_number, [](Vars x, const Settings& s) { return x[0] + s[0].number; }, "$0 + #0"},
      {"sub", pair, none, [](Vars x, const Settings&) { return x[0] - x[1]; }},
      {"sub", one(), a_number, [](Vars x, const Settings& s) { return s[0].number - x[0]; }, "#0 - $0"},
      {"mul", pair, none, [](Vars x, const Settings&) { return x[0] * x[1]; }},
      {"mul", one(), a_number, [](Vars x, const Settings& s) { return x[0] * s[0].number; }, "$0 * #0"},
      {"div", divided, none, [](Vars x, const Settings&) { return x[0] / x[1]; }},
      {"div", one(), a_divisor, [](Vars x, const Settings& s) { return x[0] / s[0].number; }, "$0 / #0"},
      {"neg", one(), none, [](Vars x, const Settings&) { return -x[0]; }},
      {"maximum", pair, none, [](Vars x, const Settings&) { return maximum(x[0], x[1]); }},
      {"maximum", one(), a_number, [](Vars x, const Settings& s) { return maximum(x[0], s[0].number); }},
      {"minimum", pair, none, [](Vars x, const Settings&) { return minimum(x[0], x[1]); }},
      {"minimum", one(), a_number, [](Vars x, const Settings& s) { return minimum(x[0], s[0].number); }},
      {"where", pair, mask, [](Vars x, const Settings& s) { return where(s[0].ids, x[0], x[1]); }, "where(#0, $0, $1)"},
      {"masked_fill", one(), mask, [](Vars x, const Settings& s) { return masked_fill(x[0], s[0].ids, 0.25); },
       "masked_fill($0, #0, 0.25)"},
      {"where", one(), mask, [](Vars x, const Settings& s) { return where(s[0].ids, 0.5, x[0]); },
       "where(#0, 0.5, $0)"},
  };
}

std::vector<Op> function_ops() {
  const auto whole = [](Shapes, Rng& rng) { return Settings{real(pick({2, 3}, rng))}; };
  const auto broken = [](Shapes, Rng& rng) { return Settings{real(pick({-1, -0.5, 0.5, 1.5}, rng))}; };
  const auto base = [](Shapes, Rng& rng) { return Settings{real(pick({0.5, 1.5, 3}, rng))}; };
  return {
      {"exp", one_within(4), none, [](Vars x, const Settings&) { return exp(x[0]); }},
      {"expm1", one_within(4), none, [](Vars x, const Settings&) { return expm1(x[0]); }},
      {"sin", one(), none, [](Vars x, const Settings&) { return sin(x[0]); }},
      {"cos", one(), none, [](Vars x, const Settings&) { return cos(x[0]); }},
      {"softplus", one(), none, [](Vars x, const Settings&) { return softplus(x[0]); }},
      {"log1p", positive(), none, [](Vars x, const Settings&) { return log1p(x[0]); }},
      {"tanh", one(), none, [](Vars x, const Settings&) { return tanh(x[0]); }},
      {"sigmoid", one(), none, [](Vars x, const Settings&) { return sigmoid(x[0]); }},
      {"relu", one(), none, [](Vars x, const Settings&) { return relu(x[0]); }},
      {"silu", one(), none, [](Vars x, const Settings&) { return silu(x[0]); }},
      {"gelu", one(), none, [](Vars x, const Settings&) { return gelu(x[0]); }},
      {"gelu_erf", one(), none, [](Vars x, const Settings&) { return gelu_erf(x[0]); }},
      {"abs", one(), none, [](Vars x, const Settings&) { return abs(x[0]); }},
      {"log", positive(), none, [](Vars x, const Settings&) { return log(x[0]); }},
      {"sqrt", positive(), none, [](Vars x, const Settings&) { return sqrt(x[0]); }},
      {"rsqrt", positive(), none, [](Vars x, const Settings&) { return rsqrt(x[0]); }},
      {"pow", one_within(4), whole, [](Vars x, const Settings& s) { return pow(x[0], s[0].number); }},
      {"pow", positive(), broken, [](Vars x, const Settings& s) { return pow(x[0], s[0].number); }},
      {"pow", one_within(3), base, [](Vars x, const Settings& s) { return pow(s[0].number, x[0]); }, "pow(#0, $0)"},
      {"pow", powers, none, [](Vars x, const Settings&) { return pow(x[0], x[1]); }},
      {"clamp", one(), bounds, [](Vars x, const Settings& s) { return clamp(x[0], s[0].number, s[1].number); }},
      {"cast", one(), none, [](Vars x, const Settings&) { return cast(x[0], x[0].dtype()); }, "cast($0, $0.dtype())"},
  };
}

}  // namespace

std::vector<Op> elementwise_ops() {
  std::vector<Op> ops = arithmetic_ops();
  std::ranges::move(function_ops(), std::back_inserter(ops));
  return ops;
}

}  // namespace braid::programs

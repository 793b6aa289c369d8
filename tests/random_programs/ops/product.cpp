#include <braid/autograd/ops.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

std::vector<int> factors(Builder& b) {
  const int x = b.any(at_least_rank(2));
  if (x == kNone) return {kNone};
  const Shape& shape = b.shape(x);
  const std::int64_t inner = shape[-1], columns = 1 + b.rng().below(3);
  const Shape lead = b.rng().below(2) == 0 ? Shape{} : shape.axes(0, shape.rank() - 2);
  return {x, b.of_shape(lead.concat({inner, columns}))};
}

/// x and the weight of a linear layer, perhaps a bias.
Operands layer(bool bias) {
  return [=](Builder& b) {
    const int x = b.any(has_axes);
    if (x == kNone) return std::vector{kNone};
    const std::int64_t in = b.shape(x)[-1], out = 1 + b.rng().below(3);
    std::vector<int> operands{x, b.of_shape({out, in})};
    if (bias) operands.push_back(b.of_shape({out}));
    return operands;
  };
}

/// A letter for each axis: that of another axis of the size, or a new one. `sizes` has the size of each letter.
std::string label(const Shape& shape, std::vector<std::int64_t>& sizes, Rng& rng) {
  std::string text;
  for (const std::int64_t size : shape) {
    std::vector<std::size_t> known{sizes.size()};
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] == size) known.push_back(i);
    const std::size_t letter = known[static_cast<std::size_t>(rng.below(std::ssize(known)))];
    if (letter == sizes.size()) sizes.push_back(size);
    text += static_cast<char>('a' + letter);
  }
  return text;
}

std::optional<Settings> summation(Shapes x, Rng& rng) {
  std::string text, out;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < x.size(); ++i) text += (i > 0 ? "," : "") + label(x[i], sizes, rng);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (rng.below(2) == 0)
      out.insert(static_cast<std::size_t>(rng.below(std::ssize(out) + 1)), 1, static_cast<char>('a' + i));
  return Settings{{text + "->" + out}};
}

Var run_einsum(Vars x, const Settings& s) { return einsum(s[0].code, x); }

std::vector<int> two(Builder& b) { return {b.any(has_axes), b.any(has_axes)}; }

}  // namespace

std::vector<Op> product_ops() {
  return {
      {"matmul", factors, none, [](Vars x, const Settings&) { return matmul(x[0], x[1]); }},
      {"linear", layer(false), none, [](Vars x, const Settings&) { return linear(x[0], x[1]); }},
      {"linear", layer(true), none, [](Vars x, const Settings&) { return linear(x[0], x[1], x[2]); }},
      {"einsum", one(has_axes), summation, run_einsum, "einsum(\"#0\", {$*})"},
      {"einsum", two, summation, run_einsum, "einsum(\"#0\", {$*})"},
  };
}

}  // namespace braid::programs

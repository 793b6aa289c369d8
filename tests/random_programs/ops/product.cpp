#include <algorithm>

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

/// A matrix or several and a vector, or two vectors; or a vector and matrices.
std::vector<int> vector_factors(Builder& b) {
  const int x = b.any(has_axes);
  if (x == kNone) return {kNone};
  const bool first = b.rng().below(2) == 0;
  const int vector = b.of_shape({b.shape(x)[first && b.shape(x).rank() > 1 ? -2 : -1]});
  return first ? std::vector{vector, x} : std::vector{x, vector};
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

/// x and the weight of a convolution of up to three taps, of each channel alone or of all; perhaps a bias.
Operands convolution(bool bias) {
  return [=](Builder& b) {
    const int x = b.any(of_rank(3));
    if (x == kNone || b.shape(x)[-1] == 0) return std::vector{kNone};
    const std::int64_t in = b.shape(x)[-1], taps = 1 + b.rng().below(3);
    const bool depthwise = b.rng().below(2) == 0;
    const Shape weight{depthwise ? in : 1 + b.rng().below(3), depthwise ? 1 : in, taps};
    std::vector<int> operands{x, b.of_shape(weight)};
    if (bias) operands.push_back(b.of_shape({weight[0]}));
    return operands;
  };
}

/// Stride, dilation, groups, and padding or causal.
std::optional<Settings> steps(Shapes x, Rng& rng) {
  const bool causal = rng.below(2) == 0;
  const std::int64_t dilation = 1 + rng.below(2), padding = causal ? 0 : rng.below(3);
  if (!causal && dilation * (x[1][2] - 1) >= x[0][1] + 2 * padding) return std::nullopt;
  return Settings{integer(1 + rng.below(2)), integer(dilation), integer(x[0][2] / x[1][1]), integer(padding),
                  truth(causal)};
}

Conv1dSettings conv1d_settings(const Settings& s) {
  return {s[0].integer(), s[1].integer(), s[2].integer(), s[3].integer(), s[4].number != 0};
}

/// Pictures and the weight of a convolution of up to 2 x 3 taps, of each channel alone or of all; perhaps a bias.
Operands convolution_of_pictures(bool bias) {
  return [=](Builder& b) {
    const int x = b.any(of_rank(4));
    if (x == kNone || b.shape(x)[-1] == 0) return std::vector{kNone};
    const std::int64_t in = b.shape(x)[-1];
    const bool depthwise = b.rng().below(2) == 0;
    const Shape weight{depthwise ? in : 1 + b.rng().below(3), depthwise ? 1 : in, 1 + b.rng().below(2),
                       1 + b.rng().below(3)};
    std::vector<int> operands{x, b.of_shape(weight)};
    if (bias) operands.push_back(b.of_shape({weight[0]}));
    return operands;
  };
}

/// Whether a window fits into x with its padding.
bool window_fits(const Shape& x, Size2d size, Size2d dilation, Size2d padding) {
  return dilation.h * (size.h - 1) < x[1] + 2 * padding.h && dilation.w * (size.w - 1) < x[2] + 2 * padding.w;
}

/// Strides, dilations, paddings and groups.
std::optional<Settings> picture_steps(Shapes x, Rng& rng) {
  const Size2d dilation{1 + rng.below(2), 1 + rng.below(2)}, padding{rng.below(3), rng.below(3)};
  if (!window_fits(x[0], {x[1][2], x[1][3]}, dilation, padding)) return std::nullopt;
  return Settings{integer(1 + rng.below(3)), integer(1 + rng.below(3)), integer(dilation.h),       integer(dilation.w),
                  integer(padding.h),        integer(padding.w),        integer(x[0][3] / x[1][1])};
}

Conv2dSettings conv2d_settings(const Settings& s) {
  return {{s[0].integer(), s[1].integer()},
          {s[2].integer(), s[3].integer()},
          {s[4].integer(), s[5].integer()},
          s[6].integer()};
}

/// A window's size, stride and padding, of at most half its size.
std::optional<Settings> window(Shapes x, Rng& rng) {
  const Size2d size{1 + rng.below(3), 1 + rng.below(3)};
  const Size2d padding{rng.below(size.h / 2 + 1), rng.below(size.w / 2 + 1)};
  if (x[0].numel() == 0 || !window_fits(x[0], size, 1, padding)) return std::nullopt;
  return Settings{integer(size.h),           integer(size.w),    integer(1 + rng.below(2)),
                  integer(1 + rng.below(2)), integer(padding.h), integer(padding.w)};
}

/// The op, called as a table has it, with window()'s settings.
template <class Op>
auto with_window(Op op) {
  return [op](Vars x, const Settings& s) {
    return op(x[0], Size2d{s[0].integer(), s[1].integer()},
              WindowSettings{.stride = {s[2].integer(), s[3].integer()}, .padding = {s[4].integer(), s[5].integer()}});
  };
}

/// An ellipsis for the first `hidden` axes and a letter for each other one: that of another axis of the size, or a new
/// one. `sizes` has the size of each letter.
std::string label(Shape shape, std::vector<std::int64_t>& sizes, int hidden, Rng& rng) {
  std::string text = hidden > 0 ? "..." : "";
  shape = shape.axes(hidden, shape.rank());
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

/// How many axes all shapes begin with alike.
int shared_lead(Shapes x) {
  int lead = 0;
  const auto alike = [&](const Shape& shape) { return shape.rank() > lead && shape[lead] == x[0][lead]; };
  while (std::ranges::all_of(x, alike)) ++lead;
  return lead;
}

std::optional<Settings> summation(Shapes x, Rng& rng) {
  std::string text, out;
  std::vector<std::int64_t> sizes;
  const int hidden = rng.below(3) == 0 ? shared_lead(x) : 0;
  for (std::size_t i = 0; i < x.size(); ++i) text += (i > 0 ? "," : "") + label(x[i], sizes, hidden, rng);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (rng.below(2) == 0)
      out.insert(static_cast<std::size_t>(rng.below(std::ssize(out) + 1)), 1, static_cast<char>('a' + i));
  const bool ellipsis = hidden > 0 && rng.below(3) > 0;
  if (std::ssize(out) + (ellipsis ? hidden : 0) > Shape::kMaxRank) return std::nullopt;
  if (ellipsis) out.insert(static_cast<std::size_t>(rng.below(std::ssize(out) + 1)), "...");
  return Settings{{text + "->" + out}};
}

Var run_einsum(Vars x, const Settings& s) { return einsum(s[0].code, x); }

std::vector<int> two(Builder& b) { return {b.any(has_axes), b.any(has_axes)}; }

std::vector<int> three(Builder& b) { return {b.any(has_axes), b.any(has_axes), b.any(has_axes)}; }

}  // namespace

std::vector<Op> product_ops() {
  return {
      {"matmul", factors, none, [](Vars x, const Settings&) { return matmul(x[0], x[1]); }},
      {"matmul", vector_factors, none, [](Vars x, const Settings&) { return matmul(x[0], x[1]); }},
      {"linear", layer(false), none, [](Vars x, const Settings&) { return linear(x[0], x[1]); }},
      {"linear", layer(true), none, [](Vars x, const Settings&) { return linear(x[0], x[1], x[2]); }},
      {"conv1d", convolution(false), steps,
       [](Vars x, const Settings& s) { return conv1d(x[0], x[1], conv1d_settings(s)); },
       "conv1d($*, {#0, #1, #2, #3, #4})"},
      {"conv1d", convolution(true), steps,
       [](Vars x, const Settings& s) { return conv1d(x[0], x[1], x[2], conv1d_settings(s)); },
       "conv1d($*, {#0, #1, #2, #3, #4})"},
      {"conv2d", convolution_of_pictures(false), picture_steps,
       [](Vars x, const Settings& s) { return conv2d(x[0], x[1], conv2d_settings(s)); },
       "conv2d($*, {{#0, #1}, {#2, #3}, {#4, #5}, #6})"},
      {"conv2d", convolution_of_pictures(true), picture_steps,
       [](Vars x, const Settings& s) { return conv2d(x[0], x[1], x[2], conv2d_settings(s)); },
       "conv2d($*, {{#0, #1}, {#2, #3}, {#4, #5}, #6})"},
      {"unfold", one(of_rank(4)), window,
       with_window([](const Var& x, Size2d size, const WindowSettings& s) { return unfold(x, size, s); }),
       "unfold($*, {#0, #1}, {.stride = {#2, #3}, .padding = {#4, #5}})"},
      {"max_pool2d", one(of_rank(4)), window,
       with_window([](const Var& x, Size2d size, const WindowSettings& s) { return max_pool2d(x, size, s); }),
       "max_pool2d($*, {#0, #1}, {.stride = {#2, #3}, .padding = {#4, #5}})"},
      {"mean_pool2d", one(of_rank(4)), window,
       with_window([](const Var& x, Size2d size, const WindowSettings& s) { return mean_pool2d(x, size, s); }),
       "mean_pool2d($*, {#0, #1}, {.stride = {#2, #3}, .padding = {#4, #5}})"},
      {"einsum", one(has_axes), summation, run_einsum, "einsum(\"#0\", {$*})"},
      {"einsum", two, summation, run_einsum, "einsum(\"#0\", {$*})"},
      {"einsum", three, summation, run_einsum, "einsum(\"#0\", {$*})"},
  };
}

}  // namespace braid::programs

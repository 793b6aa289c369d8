#include <algorithm>

#include <braid/autograd/ops.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

/// One of a few shapes with the same number of elements: flat, with an axis of size 1, two axes joined, or all in
/// reverse order.
std::optional<Settings> another_shape(Shapes x, Rng& rng) {
  const Shape& shape = x[0];
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  const std::int64_t how = rng.below(4);
  if (how == 0) {
    sizes = {shape.numel()};
  } else if (how == 1) {
    sizes.insert(sizes.begin() + rng.below(shape.rank() + 1), 1);
  } else if (how == 2 && shape.rank() > 1) {
    const auto axis = static_cast<std::size_t>(rng.below(shape.rank() - 1));
    sizes[axis] *= sizes[axis + 1];
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  } else {
    std::ranges::reverse(sizes);
  }
  return Settings{list(sizes)};
}

std::optional<Settings> two_axes(Shapes x, Rng& rng) { return Settings{axis_of(x[0], rng), axis_of(x[0], rng)}; }

std::optional<Settings> permutation(Shapes x, Rng& rng) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < x[0].rank(); ++axis)
    axes.insert(axes.begin() + rng.below(axis + 1), rng.below(2) == 0 ? axis : axis - x[0].rank());
  return Settings{list(axes)};
}

std::optional<Settings> range(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t size = x[0][axis.integer()], begin = rng.below(size + 1);
  return Settings{axis, integer(begin), integer(begin + rng.below(size - begin + 1))};
}

/// The same with a step, forwards or backwards.
std::optional<Settings> stepped_range(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t size = x[0][axis.integer()], begin = rng.below(size + 1), step = 1 + rng.below(3);
  const std::int64_t end = begin + rng.below(size - begin + 1);
  if (rng.below(2) == 0) return Settings{axis, integer(begin), integer(end), integer(step)};
  return Settings{axis, integer(end - size - 1), integer(begin - size - 1), integer(-step)};
}

/// Two sizes that add up to that of an axis, and which part to take.
std::optional<Settings> two_parts(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t size = x[0][axis.integer()], first = rng.below(size + 1);
  return Settings{axis, integer(first), integer(size - first)};
}

std::optional<Settings> equal_parts(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t count = 1 + rng.below(3);
  if (x[0][axis.integer()] % count != 0) return std::nullopt;
  return Settings{axis, integer(count)};
}

std::optional<Settings> axes_to_flip(Shapes x, Rng& rng) { return Settings{list(some_axes(x[0], rng))}; }

std::optional<Settings> axis_and_shift(Shapes x, Rng& rng) {
  return Settings{axis_of(x[0], rng), integer(rng.below(13) - 6)};
}

std::optional<Settings> padding(Shapes x, Rng& rng) {
  return Settings{axis_of(x[0], rng), integer(rng.below(3)), integer(rng.below(3)), number(rng)};
}

std::optional<Settings> counts(Shapes x, Rng& rng) {
  std::vector<std::int64_t> values;
  for (int axis = 0; axis < x[0].rank(); ++axis) values.push_back(rng.below(10) == 0 ? 0 : 1 + rng.below(2));
  return Settings{list(values)};
}

std::optional<Settings> diagonal(Shapes, Rng& rng) { return Settings{integer(rng.below(5) - 2)}; }

std::optional<Settings> position(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t size = x[0][axis.integer()];
  if (size == 0) return std::nullopt;
  return Settings{axis, integer(rng.below(2 * size) - size)};
}

std::optional<Settings> new_axis(Shapes x, Rng& rng) { return Settings{integer(rng.below(x[0].rank() + 2) - 1)}; }

std::optional<Settings> unit_axis(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  if (x[0][axis.integer()] != 1) return std::nullopt;
  return Settings{axis};
}

std::optional<Settings> larger_shape(Shapes x, Rng& rng) {
  Shape shape = x[0];
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] == 1) shape = shape.with(axis, rng.below(4));
  if (rng.below(2) == 0) shape = shape.inserted(0, 1 + rng.below(3));
  return Settings{list({shape.begin(), shape.end()})};
}

/// Two or three values that differ along one axis; x itself may be among them twice.
std::vector<int> parts(Builder& b) {
  const int x = b.any(has_axes);
  if (x == kNone) return {kNone};
  const int axis = static_cast<int>(b.rng().below(b.shape(x).rank()));
  const int y = b.of_shape(b.shape(x).with(axis, b.rng().below(4)));
  return b.rng().below(2) == 0 ? std::vector{x, y} : std::vector{y, x, x};
}

/// The axis along which the shapes may differ, if they can be concatenated.
std::optional<Settings> common_axis(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  for (const Shape& shape : x)
    if (shape.rank() != x[0].rank() || shape.with(axis.integer(), 1) != x[0].with(axis.integer(), 1))
      return std::nullopt;
  return Settings{axis};
}

std::vector<int> equals(Builder& b) {
  const int x = b.any();
  return {x, b.of_shape(b.shape(x)), x};
}

std::optional<Settings> new_axis_of_equals(Shapes x, Rng& rng) {
  if (std::ranges::any_of(x, [&](const Shape& shape) { return shape != x[0]; })) return std::nullopt;
  return new_axis(x, rng);
}

}  // namespace

std::vector<Op> shape_ops() {
  return {
      {"reshape", one(), another_shape, [](Vars x, const Settings& s) { return reshape(x[0], s[0].shape()); },
       "reshape($0, Shape#0)"},
      {"transpose", one(has_axes), two_axes,
       [](Vars x, const Settings& s) { return transpose(x[0], s[0].integer(), s[1].integer()); }},
      {"permute", one(), permutation, [](Vars x, const Settings& s) { return permute(x[0], s[0].axes()); }},
      {"slice", one(has_axes), range,
       [](Vars x, const Settings& s) { return slice(x[0], s[0].integer(), s[1].integer(), s[2].integer()); }},
      {"slice", one(has_axes), stepped_range,
       [](Vars x, const Settings& s) {
         return slice(x[0], s[0].integer(), s[1].integer(), s[2].integer(), s[3].integer());
       }},
      {"split", one(has_axes), two_parts,
       [](Vars x, const Settings& s) {
         return split(x[0], s[0].integer(), {s[1].integer(), s[2].integer()})[1];
       },
       "split($0, #0, {#1, #2})[1]"},
      {"chunk", one(has_axes), equal_parts,
       [](Vars x, const Settings& s) {
         const std::vector<Var> parts = chunk(x[0], s[0].integer(), s[1].integer());
         return parts.back() - parts.front();
       },
       "chunk($0, #0, #1).back() - chunk($0, #0, #1).front()"},
      {"unbind", one(has_axes), position,
       [](Vars x, const Settings& s) {
         const std::vector<Var> parts = unbind(x[0], s[0].integer());
         const auto count = std::ssize(parts);
         return parts[static_cast<std::size_t>((s[1].integer() + count) % count)] - parts.front();
       },
       "select($0, #0, #1) - unbind($0, #0).front()"},
      {"flip", one(), axes_to_flip, [](Vars x, const Settings& s) { return flip(x[0], s[0].axes()); }},
      {"roll", one(has_axes), axis_and_shift,
       [](Vars x, const Settings& s) { return roll(x[0], s[0].integer(), s[1].integer()); }},
      {"pad", one(has_axes), padding,
       [](Vars x, const Settings& s) {
         return pad(x[0], s[0].integer(), s[1].integer(), s[2].integer(), s[3].number);
       }},
      {"repeat", one(), counts, [](Vars x, const Settings& s) { return repeat(x[0], s[0].list); }},
      {"tril", one(at_least_rank(2)), diagonal, [](Vars x, const Settings& s) { return tril(x[0], s[0].integer()); }},
      {"triu", one(at_least_rank(2)), diagonal, [](Vars x, const Settings& s) { return triu(x[0], s[0].integer()); }},
      {"select", one(has_axes), position,
       [](Vars x, const Settings& s) { return select(x[0], s[0].integer(), s[1].integer()); }},
      {"concat", parts, common_axis, [](Vars x, const Settings& s) { return concat(x, s[0].integer()); },
       "concat({$*}, #0)"},
      {"stack", equals, new_axis_of_equals, [](Vars x, const Settings& s) { return stack(x, s[0].integer()); },
       "stack({$*}, #0)"},
      {"broadcast_to", one(), larger_shape, [](Vars x, const Settings& s) { return broadcast_to(x[0], s[0].shape()); }},
      {"expand_dims", one(), new_axis, [](Vars x, const Settings& s) { return expand_dims(x[0], s[0].integer()); }},
      {"squeeze", one(has_axes), unit_axis, [](Vars x, const Settings& s) { return squeeze(x[0], s[0].integer()); }},
  };
}

}  // namespace braid::programs

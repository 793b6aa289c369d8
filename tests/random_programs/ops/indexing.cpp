#include <braid/autograd/ops.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

std::optional<Settings> rows(Shapes x, Rng& rng) {
  if (x[0].rank() != 2 || x[0][0] == 0) return std::nullopt;
  const Shape shape = rng.below(2) == 0 ? Shape{rng.below(5)} : Shape{rng.below(3), 2};
  return Settings{ids(randint(0, x[0][0], shape, rng))};
}

std::optional<Settings> axis_and_list(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t size = x[0][axis.integer()];
  if (size == 0) return std::nullopt;
  return Settings{axis, ids(randint(-size, size, {rng.below(5)}, rng))};
}

std::optional<Settings> axis_and_ids(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t size = x[0][axis.integer()];
  if (size == 0) return std::nullopt;
  return Settings{axis, ids(randint(-size, size, x[0].with(axis.integer(), rng.below(4)), rng))};
}

std::vector<int> target_and_source(Builder& b) {
  const int x = b.any(has_axes);
  if (x == kNone) return {kNone};
  const int axis = static_cast<int>(b.rng().below(b.shape(x).rank()));
  return {x, b.of_shape(b.shape(x).with(axis, b.rng().below(4)))};
}

/// Where the second operand goes in the first one.
std::optional<Settings> axis_and_targets(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  const std::int64_t size = x[0][axis.integer()];
  if (size == 0 || x[1].rank() != x[0].rank() || x[1].with(axis.integer(), size) != x[0]) return std::nullopt;
  return Settings{axis, ids(randint(-size, size, x[1], rng))};
}

std::optional<Settings> axis_and_direction(Shapes x, Rng& rng) {
  return Settings{axis_of(x[0], rng), truth(rng.below(2) == 0)};
}

std::optional<Settings> count_and_axis(Shapes x, Rng& rng) {
  const Setting axis = axis_of(x[0], rng);
  return Settings{integer(rng.below(x[0][axis.integer()] + 1)), axis};
}

std::optional<Settings> share_and_seed(Shapes, Rng& rng) {
  return Settings{real(pick({0, 0.25, 0.5}, rng)), integer(rng.below(100))};
}

}  // namespace

std::vector<Op> indexing_ops() {
  return {
      {"embedding", one(of_rank(2)), rows, [](Vars x, const Settings& s) { return embedding(x[0], s[0].ids); }},
      {"index_select", one(has_axes), axis_and_list,
       [](Vars x, const Settings& s) { return index_select(x[0], s[0].integer(), s[1].ids); }},
      {"gather", one(has_axes), axis_and_ids,
       [](Vars x, const Settings& s) { return gather(x[0], s[0].integer(), s[1].ids); }},
      {"scatter_add", target_and_source, axis_and_targets,
       [](Vars x, const Settings& s) { return scatter_add(x[0], s[0].integer(), s[1].ids, x[1]); },
       "scatter_add($0, #0, #1, $1)"},
      {"sort", one(has_axes), axis_and_direction,
       [](Vars x, const Settings& s) { return sort(x[0], s[0].integer(), s[1].number != 0).values; },
       "sort($0, #0, #1).values"},
      {"topk", one(has_axes), count_and_axis,
       [](Vars x, const Settings& s) { return topk(x[0], s[0].integer(), s[1].integer()).values; },
       "topk($0, #0, #1).values"},
      {"dropout", one(), share_and_seed,
       [](Vars x, const Settings& s) {
         Rng rng(static_cast<std::uint64_t>(s[1].integer()));
         return dropout(x[0], s[0].number, rng);
       },
       "[&] { Rng rng(#1); return dropout($0, #0, rng); }()"},
  };
}

}  // namespace braid::programs

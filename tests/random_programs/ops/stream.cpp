#include <algorithm>

#include <braid/autograd/ops.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/gated_read.h>
#include <braid/mhc/ops/group_mix.h>
#include <braid/mhc/ops/mhc_layer.h>
#include <braid/mhc/ops/read_write.h>
#include <braid/mhc/ops/weighted_sum.h>
#include <tests/random_programs/table.h>

namespace braid::programs {
namespace {

/// Streams [..., n, C] with something in them.
int streams(Builder& b) {
  return b.any([](const Shape& s) { return s.rank() >= 2 && s.numel() > 0 && s[-2] <= 4; });
}

/// Operands for streams of that shape, drawn when there are such streams.
Operands with_streams(std::vector<int> (*others)(Builder& b, int x)) {
  return [=](Builder& b) {
    const int x = streams(b);
    return x == kNone ? std::vector{kNone} : others(b, x);
  };
}

/// A map of all tokens or of each one.
int map_of(Builder& b, const Shape& x, const Shape& map) {
  return b.of_shape(b.rng().below(2) == 0 ? map : x.axes(0, x.rank() - 2).concat(map));
}

std::vector<int> read(Builder& b, int x) { return {map_of(b, b.shape(x), {b.shape(x)[-2]}), x}; }

std::vector<int> write(Builder& b, int x) {
  const Shape shape = b.shape(x);
  const std::int64_t n = shape[-2];
  return {map_of(b, shape, {n, n}), map_of(b, shape, {n}), x, b.of_shape(shape.without(-2))};
}

std::vector<int> matrix(Builder& b, int x) {
  return {map_of(b, b.shape(x), {1 + b.rng().below(3), b.shape(x)[-2]}), x};
}

std::vector<int> scaled(Builder& b, int x) { return {b.of_shape({b.shape(x)[-2]}), x}; }

std::vector<int> mixed(Builder& b, int x) {
  const Shape shape = b.shape(x);
  const std::int64_t n = shape[-2];
  return {b.of_shape({n, n}), b.of_shape({n}), x, b.of_shape(shape)};
}

std::vector<int> layered(Builder& b, int x) {
  const Shape shape = b.shape(x);
  const std::int64_t n = shape[-2];
  return {b.of_shape({n}), b.of_shape({n}), b.of_shape({n, n}), b.of_shape({shape[-1]}), x};
}

std::vector<int> gated(Builder& b, int x) {
  const std::int64_t all = b.shape(x)[-2] * b.shape(x)[-1], rank = 1 + b.rng().below(2);
  return {b.of_shape({all}), b.of_shape({rank, all}), b.of_shape({all, rank}), x};
}

/// A state, weights, and one state per weight.
std::vector<int> history(Builder& b) {
  const int x = b.any();
  const std::int64_t states = 1 + b.rng().below(2);
  std::vector<int> operands{x, b.of_shape({states})};
  for (std::int64_t i = 0; i < states; ++i) operands.push_back(b.of_shape(b.shape(x)));
  return operands;
}

/// A query, a norm and two states.
std::vector<int> depth(Builder& b) {
  const int v = b.any(has_axes);
  if (v == kNone) return {kNone};
  const Shape shape = b.shape(v), row{shape[-1]};
  return {b.of_shape(row), b.of_shape(row), v, b.of_shape(shape)};
}

std::optional<Settings> any_form(Shapes, Rng& rng) { return Settings{form(rng)}; }

std::optional<Settings> count(Shapes, Rng& rng) { return Settings{integer(1 + rng.below(3))}; }

std::optional<Settings> reduction(Shapes, Rng& rng) {
  return Settings{rng.below(2) == 0 ? Setting{"mhc::StreamReduction::mean", 0}
                                    : Setting{"mhc::StreamReduction::sum", 1}};
}

Var sum_of_history(Vars x, const Settings&) { return mhc::weighted_sum(x[0], x[1], x.subspan(2)); }

}  // namespace

std::vector<Op> stream_ops() {
  return {
      {"expand_streams", one(has_axes), count,
       [](Vars x, const Settings& s) { return mhc::expand_streams(x[0], s[0].integer()); },
       "mhc::expand_streams($0, #0)"},
      {"reduce_streams", with_streams([](Builder&, int x) { return std::vector{x}; }), reduction,
       [](Vars x, const Settings& s) {
         return mhc::reduce_streams(x[0], static_cast<mhc::StreamReduction>(s[0].integer()));
       },
       "mhc::reduce_streams($0, #0)"},
      {"read_streams", with_streams(read), any_form,
       [](Vars x, const Settings& s) { return in_form(s[0], [&] { return mhc::read_streams(x[0], x[1]); }); },
       "#0([&] { return mhc::read_streams($*); })"},
      {"write_streams", with_streams(write), any_form,
       [](Vars x, const Settings& s) {
         return in_form(s[0], [&] { return mhc::write_streams(x[0], x[1], x[2], x[3]); });
       },
       "#0([&] { return mhc::write_streams($*); })"},
      {"mix_streams", with_streams(matrix), any_form,
       [](Vars x, const Settings& s) { return in_form(s[0], [&] { return mhc::mix_streams(x[0], x[1]); }); },
       "#0([&] { return mhc::mix_streams($*); })"},
      {"scale_groups", with_streams(scaled), none,
       [](Vars x, const Settings&) { return mhc::scale_groups(x[0], x[1]); }, "mhc::scale_groups($*)"},
      {"mix_groups", with_streams(mixed), none,
       [](Vars x, const Settings&) { return mhc::mix_groups(x[0], x[1], x[2], x[3]); }, "mhc::mix_groups($*)"},
      {"mhc_layer", with_streams(layered), none,
       [](Vars x, const Settings&) { return mhc::mhc_layer(x[0], x[1], x[2], x[3], x[4]); }, "mhc::mhc_layer($*)"},
      {"gated_mean", with_streams(gated), none,
       [](Vars x, const Settings&) {
         return mhc::gated_mean({x[0], x[1], x[2], 1e-5}, x[3]);
       },
       "mhc::gated_mean({$0, $1, $2, 1e-5}, $3)"},
      {"attention_residual", depth, any_form,
       [](Vars x, const Settings& s) {
         return in_form(s[0], [&] { return mhc::attention_residual(x[0], x[1], x.subspan(2)); });
       },
       "#0([&] { return mhc::attention_residual($0, $1, std::vector{$2*}); })"},
      {"attention_residual_weights", depth, none,
       [](Vars x, const Settings&) { return mhc::attention_residual_weights(x[0], x[1], x.subspan(2)); },
       "mhc::attention_residual_weights($0, $1, std::vector{$2*})"},
      {"weighted_sum", history, none, sum_of_history, "mhc::weighted_sum($0, $1, std::vector{$2})"},
  };
}

}  // namespace braid::programs

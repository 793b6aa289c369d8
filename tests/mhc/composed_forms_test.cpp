// Every fused op beside its composed form: the same values and gradients at random shapes and on views, gradients by
// central differences, the same bits for any number of threads.
#include <tests/mhc/fused_ops.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/kernels/tiles.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/ops/group_mix.h>
#include <braid/mhc/ops/mhc_layer.h>
#include <braid/mhc/ops/weighted_sum.h>
#include <braid/mhc/streams/streams.h>
#include <tests/derivative_patterns.h>
#include <tests/mhc/support.h>
#include <tests/support.h>
#include <tests/target_guard.h>

namespace braid::mhc::composed_forms_test {
namespace {

/// The value and the gradient of every input for a cotangent.
std::vector<Tensor> evaluate(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy) {
  Tape tape;
  std::vector<Var> vars;
  for (const Tensor& input : inputs) vars.push_back(tape.watch(input));
  const Var y = f(vars);
  tape.backward(y, dy);
  std::vector<Tensor> results{y.value()};
  for (const Var& v : vars) results.push_back(tape.gradient(v));
  return results;
}

Tensor cotangent_for(const FusedCall& call, Rng& rng) {
  return random(call.fused(std::vector<Var>(call.inputs.begin(), call.inputs.end())).shape(), rng);
}

std::vector<Tensor> converted(const std::vector<Tensor>& tensors, DType dtype) {
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) result.push_back(t.to(dtype));
  return result;
}

/// The largest difference of a tensor relative to its scale, which is at least 1, and for a gradient that sums many
/// terms of order 1 at least the root of their number: what they add up to unless they cancel by an identity, as they
/// do for a scale in front of a norm. Infinite when a number is not finite.
double error(const Tensor& got, const Tensor& expected, const Tensor& y) {
  const double terms = static_cast<double>(y.numel()) / static_cast<double>(std::max<std::int64_t>(1, got.numel()));
  double scale = std::max(1.0, std::sqrt(terms));
  for (const double v : expected.to_vector<double>()) scale = std::max(scale, std::abs(v));
  for (const double v : got.to_vector<double>())
    if (!std::isfinite(v)) return std::numeric_limits<double>::infinity();
  return largest_difference(got, expected) / scale;
}

std::string name_of_result(std::size_t i) { return i == 0 ? "value" : fmt::format("gradient of input {}", i - 1); }

void expect_agreement_in_f64(const FusedCall& call, const Tensor& dy) {
  const std::vector<Tensor> got = evaluate(call.fused, call.inputs, dy),
                            expected = evaluate(call.composed(), call.inputs, dy);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LE(error(got[i], expected[i], got[0]), 1e-12) << name_of_result(i);
}

/// Each element a little larger or smaller, by that part of itself.
Tensor jittered(const Tensor& x, double part, Rng& rng) {
  std::vector<double> values = x.to_vector<double>();
  for (double& v : values) v *= rng.uniform() < 0.5 ? 1 - part : 1 + part;
  return Tensor::of<double>(x.shape(), std::span<const double>(values));
}

/// The fused op in f32, or on streams of bf16 with maps of f32, beside the composed form in f64 on the same values. Its
/// roundings, that of the result included, may cost eight times as much as roundings of what is in the dtype and of the
/// cotangent, which are measured on the composed form; in f32 always 1e-5, and never more than 5e-5.
void expect_agreement_in(DType dtype, const FusedCall& call, const Tensor& dy) {
  const bool wide = dtype == DType::f32;
  std::vector<std::size_t> in_dtype = call.streams;
  if (wide) {
    in_dtype.resize(call.inputs.size());
    std::iota(in_dtype.begin(), in_dtype.end(), 0);
  }
  std::vector<Tensor> rounded = converted(call.inputs, DType::f32);
  for (const std::size_t i : in_dtype) rounded[i] = rounded[i].to(dtype);
  const Tensor cotangent = dy.to(dtype).to(in_dtype.empty() ? DType::f32 : dtype), in_f64 = cotangent.to(DType::f64);
  const std::vector<Tensor> inputs = converted(rounded, DType::f64);
  const std::vector<Tensor> got = evaluate(call.fused, rounded, cotangent),
                            exact = evaluate(call.composed(), inputs, in_f64);
  EXPECT_EQ(got[0].dtype(), cotangent.dtype());
  std::vector<double> errors;
  for (std::size_t i = 0; i < got.size(); ++i) errors.push_back(error(got[i], exact[i], got[0]));
  const double always = wide ? 1e-5 : 0, never = wide ? 5e-5 : std::numeric_limits<double>::infinity();
  if (std::ranges::max(errors) <= always) return;
  Rng rng(18);
  const double rounding = wide ? 0x1p-24 : 0x1p-8;
  std::vector<double> cost(got.size(), rounding);
  for (int trial = 0; trial < 2; ++trial) {
    std::vector<Tensor> near = inputs;
    for (const std::size_t i : in_dtype) near[i] = jittered(near[i], rounding, rng);
    const std::vector<Tensor> moved = evaluate(call.composed(), near, jittered(in_f64, rounding, rng));
    for (std::size_t i = 0; i < got.size(); ++i) cost[i] = std::max(cost[i], error(moved[i], exact[i], got[0]));
  }
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LE(errors[i], std::clamp(8 * cost[i], always, never)) << name_of_result(i);
}

/// A number from 0 to a bound, which is one of several: each pair holds for draws of [0, 1) below its share.
std::int64_t draw(Rng& rng, std::initializer_list<std::pair<double, std::int64_t>> bounds) {
  const double u = rng.uniform();
  for (const auto& [share, bound] : bounds)
    if (u < share) return rng.below(bound + 1);
  return 0;
}

/// Small, odd and empty sizes often, and sometimes more streams, channels or tokens than a tile, vector or unrolled
/// loop.
CallSizes random_sizes(const FusedOp& family, Rng& rng) {
  constexpr std::int64_t kElements = 40'000;
  for (;;) {
    const std::int64_t n = std::max<std::int64_t>(1, draw(rng, {{0.7, 5}, {0.95, 16}, {1.0, 64}}));
    const std::int64_t channels = draw(rng, {{0.2, 2}, {0.6, 20}, {0.9, 100}, {1.0, 1500}});
    const std::int64_t tokens = draw(rng, {{0.2, 1}, {0.7, 7}, {0.9, 60}, {1.0, 700}});
    if (!family.takes(n)) continue;
    if (channels == 0 && !family.without_channels) continue;
    if (tokens * n * std::max(n, channels) > kElements) continue;
    if (family.largest_parameter != 0 && n * n * (n + 2) * channels > family.largest_parameter) continue;
    if (tokens % 2 == 0 && rng.uniform() < 0.3) return {{2, tokens / 2}, n, channels};
    return {tokens == 1 && rng.uniform() < 0.3 ? Shape{} : Shape{tokens}, n, channels};
  }
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif
constexpr int kShapes = kSlow ? 20 : 80;  // of each family: 2,880 in all, 1,040 of them with mixings

class ComposedForms : public testing::TestWithParam<FusedOp> {};

void expect_agreement(const FusedOp& family, int shapes, Rng& rng) {
  for (int shape = 0; shape < shapes && !testing::Test::HasFailure(); ++shape) {
    const CallSizes sizes = random_sizes(family, rng);
    SCOPED_TRACE(fmt::format("lead {}, n = {}, C = {}", sizes.lead, sizes.n, sizes.channels));
    const FusedCall call = family.make(sizes, rng);
    const Tensor dy = cotangent_for(call, rng);
    expect_agreement_in_f64(call, dy);
    expect_agreement_in(DType::f32, call, dy);
    if (shape % 4 == 0) expect_agreement_in(DType::bf16, call, dy);
  }
}

TEST_P(ComposedForms, AgreeAtRandomShapes) {
  Rng rng(11);
  expect_agreement(GetParam(), kShapes, rng);
}

TEST_P(ComposedForms, AgreeOnEverySimdTarget) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    Rng rng(15 + std::countr_zero(static_cast<std::uint64_t>(target)));  // the same shapes on every processor
    const TargetGuard guard(target);
    expect_agreement(GetParam(), kShapes / 4, rng);
  }
}

TEST_P(ComposedForms, AgreeWhereStoresAreNonTemporal) {
  Rng rng(16);
  for (const CallSizes& sizes : {CallSizes{{2049}, 4, 128}, {{1031}, 5, 208}}) {
    if (!GetParam().takes(sizes.n) || !GetParam().at_large_sizes) continue;
    SCOPED_TRACE(fmt::format("lead {}, n = {}, C = {}", sizes.lead, sizes.n, sizes.channels));
    ASSERT_GE(4 * sizes.lead.numel() * sizes.n * sizes.channels, kernels::kNonTemporalBytes);
    const FusedCall call = GetParam().make(sizes, rng);
    const Tensor dy = cotangent_for(call, rng);
    expect_agreement_in_f64(call, dy);
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      if (kSlow && target == HWY_EMU128) continue;
      SCOPED_TRACE(hwy::TargetName(target));
      const TargetGuard guard(target);
      expect_agreement_in(DType::f32, call, dy);
    }
    if (kSlow) break;
    if (sizes.n == 4) expect_agreement_in(DType::bf16, call, dy);
  }
}

// Vectors of such rows are not aligned, so that they must be stored like others.
TEST_P(ComposedForms, AgreeAtLargeSizesWhoseRowsAreNoWholeLines) {
  Rng rng(17);
  const CallSizes sizes{{2303}, 4, 117};
  if (!GetParam().at_large_sizes) return;
  ASSERT_GE(4 * sizes.lead.numel() * sizes.n * sizes.channels, kernels::kNonTemporalBytes);
  const FusedCall call = GetParam().make(sizes, rng);
  const std::vector<Tensor> rounded = converted(call.inputs, DType::f32);
  const Tensor dy = cotangent_for(call, rng).to(DType::f32);
  const std::vector<Tensor> got = evaluate(call.fused, rounded, dy),
                            exact = evaluate(call.fused, converted(rounded, DType::f64), dy.to(DType::f64));
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_LE(error(got[i], exact[i], got[0]), 1e-5) << name_of_result(i);
}

TEST_P(ComposedForms, PassGradcheck) {
  Rng rng(12);
  for (const CallSizes& sizes : {CallSizes{{}, 1, 1}, {{3}, 2, 3}, {{2, 1}, 4, 5}, {{2}, 5, 2}}) {
    if (!GetParam().takes(sizes.n)) continue;
    const FusedCall call = GetParam().make(sizes, rng);
    const GradcheckResult result = gradcheck(call.fused, call.inputs, {.order = 2, .by = GradcheckOptions::By::both});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST_P(ComposedForms, AgreeWithRulesAtRandomShapes) {
  Rng rng(18);
  for (int shape = 0; shape < kShapes / 4; ++shape) {
    const FusedCall call = GetParam().make(random_sizes(GetParam(), rng), rng);
    const GradcheckResult result = gradcheck(call.fused, call.inputs, {.by = GradcheckOptions::By::rules});
    EXPECT_TRUE(result.ok) << result.message;
  }
}

TEST_P(ComposedForms, HaveTheSameGradientsWhicheverInputsAreConstants) {
  Rng rng(19);
  const FusedCall call = GetParam().make({{2}, GetParam().takes(2) ? 2 : 4, 3}, rng);
  patterns::expect_gradients_of_every_subset(call.fused, call.inputs);
}

TEST_P(ComposedForms, HaveOneJacobian) {
  Rng rng(20);
  const FusedCall call = GetParam().make({{2}, GetParam().takes(2) ? 2 : 4, 1}, rng);
  patterns::expect_one_jacobian(call.fused, call.inputs);
}

TEST_P(ComposedForms, TakeUndefinedCotangentsForZeros) {
  Rng rng(21);
  const FusedCall call = GetParam().make({{2}, 4, 3}, rng);
  patterns::expect_undefined_cotangents_to_be_zeros(call.fused, call.inputs);
}

TEST_P(ComposedForms, TakeViewsOfInputsAndCotangents) {
  Rng rng(13);
  const FusedCall call = GetParam().make({{3, 2}, 4, 5}, rng);
  const auto reversed = [](const Tensor& t) {  // the same values with the axes in memory in reverse order
    std::vector<int> axes;
    for (int axis = t.rank() - 1; axis >= 0; --axis) axes.push_back(axis);
    return t.permute(axes).clone().permute(axes);
  };
  std::vector<Tensor> views;
  for (const Tensor& input : call.inputs) views.push_back(reversed(input));
  const Tensor dy = cotangent_for(call, rng);
  const std::vector<Tensor> expected = evaluate(call.fused, call.inputs, dy),
                            got = evaluate(call.fused, views, reversed(dy));
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i].contiguous(), expected[i].contiguous()));
}

TEST_P(ComposedForms, GiveTheSameBitsForAnyNumberOfThreads) {
  Rng rng(14);
  for (const CallSizes& sizes : {CallSizes{{611}, 4, 9}, {{70}, 3, 300}}) {
    if (!GetParam().takes(sizes.n)) continue;
    const FusedCall call = GetParam().make(sizes, rng);
    const Tensor dy = cotangent_for(call, rng);
    const WithThreads one(1);
    const std::vector<Tensor> expected = evaluate(call.fused, call.inputs, dy);
    for (const int threads : {2, 3}) {
      const WithThreads several(threads);
      const std::vector<Tensor> got = evaluate(call.fused, call.inputs, dy);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], expected[i]));
    }
  }
}

TEST_P(ComposedForms, RefuseTheTypesThatFusedFormsRefuse) {
  Rng rng(15);
  const std::int64_t n = GetParam().takes(4) ? 4 : 2;
  const FusedCall call = GetParam().make({{3}, n, 8}, rng);
  const auto refuses = [](const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
    try {
      f(std::vector<Var>(inputs.begin(), inputs.end()));
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::i32}) {
    std::vector<Tensor> all = converted(call.inputs, dtype), streams = converted(call.inputs, compute_dtype(dtype));
    for (const std::size_t i : call.streams) streams[i] = streams[i].to(dtype);
    EXPECT_EQ(refuses(call.fused, all), refuses(call.composed(), all)) << name(dtype);
    EXPECT_EQ(refuses(call.fused, streams), refuses(call.composed(), streams)) << "streams of " << name(dtype);
  }
}

TEST(Tiles, HoldAQuarterOfAMiBOfStreamsButAtLeast16AndAtMost256Tokens) {
  EXPECT_EQ(kernels::tiles_of<float>({1000, 1, 328}).size, 199);  // 2^18 / 1312
  EXPECT_EQ(kernels::tiles_of<double>({1000, 4, 256}).size, 32);
  EXPECT_EQ(kernels::tiles_of<float>({1000, 4, 4096}).size, 16);
  for (const std::int64_t channels : {0, 8}) EXPECT_EQ(kernels::tiles_of<float>({1000, 4, channels}).size, 256);
}

TEST(Tiles, AreStoredPastTheCachesFromFourMiBInRowsOfWholeLines) {
  alignas(64) static constexpr float kLines[32] = {};
  constexpr std::int64_t kSize = kernels::kNonTemporalBytes / 4;
  EXPECT_TRUE(kernels::non_temporal(kLines, kSize, 16));
  EXPECT_FALSE(kernels::non_temporal(kLines, kSize - 1, 16));
  EXPECT_FALSE(kernels::non_temporal(kLines, kSize, 24));
  EXPECT_FALSE(kernels::non_temporal(kLines + 4, kSize, 16));
}

TEST(FusedOps, RejectShapesThatDoNotFitX) {
  using testing::HasSubstr, testing::ThrowsMessage;
  const Var x = zeros({2, 4, 8}), map = zeros({4}), matrix = zeros({4, 4}), state = zeros({2, 8}), none = zeros({3});
  const auto expect = [](auto call, const char* text) {
    EXPECT_THAT(call, ThrowsMessage<ShapeError>(HasSubstr(text)));
  };
  const auto read = [&](const Var& pre, const Var& post, const Var& res) {
    return Streams(x).read(StreamMaps{pre, post, res});
  };
  expect([&] { read(none, map, matrix); },
         "read_streams: h_pre must have shape [4] or [2, 4] to match x [2, 4, 8] but has [3]");
  expect([&] { read(map, none, matrix); }, "read_streams: h_post must have shape [4] or [2, 4]");
  expect([&] { read(map, map, map); }, "read_streams: h_res must have shape [4, 4] or [2, 4, 4]");
  expect(
      [&] {
        mix_streams(zeros({5, 3}), x);
      },
      "mix_streams: map must have shape [..., m, 4] to match x [2, 4, 8] but has [5, 3]");
  expect([&] { mix_streams(map, x); }, "mix_streams: map must have shape [..., m, 4] to match x [2, 4, 8] but has [4]");
  expect([&] { mhc_layer(map, map, matrix, map, x); }, "mhc_layer: weight must have shape [8]");
  expect([&] { mhc_layer(map, none, matrix, map, x); }, "mhc_layer: h_post must have shape [4]");
  expect([&] { mhc_layer(map, map, map, map, x); }, "mhc_layer: h_res must have shape [4, 4]");
  expect([&] { scale_groups(none, x); }, "scale_groups: scale must have shape [4] to match x [2, 4, 8] but has [3]");
  expect([&] { mix_groups(map, map, x, x); }, "mix_groups: mixing must have shape [4, 4]");
  expect([&] { mix_groups(matrix, map, map, map); }, "mix_groups: x must have shape [..., n, C] but has [4]");
  expect([&] { mix_groups(matrix, map, x, state); }, "mix_groups: f must have shape [2, 4, 8]");
  expect([&] { Streams(x).read(HyperMaps{none, none, none, 1}); }, "HyperConnection: theta must have shape [6, 8]");
  MHCMaps maps{.phi = zeros({32, 24}), .alpha = none, .bias = zeros({24}), .mixing = Mixing("sinkhorn", 4), .eps = 1};
  expect([&] { Streams(x).read(SinglePassMaps{maps, none}); }, "mhc_read: pre must have shape [4] to match x");
  expect([&] { compose_maps(maps, zeros({2, 3, 8})); }, "mhc_read: x must have shape [..., 4, C] to match the mixing");
  maps.alpha = map;
  expect([&] { Streams(x).read(maps); }, "mhc_read: alpha must have shape [3] to match x [2, 4, 8] but has [4]");
  expect([&] { weighted_sum(x, none, std::vector{x}); }, "weighted_sum: weights must have shape [1], one per state");
  expect([&] { weighted_sum(x, zeros({1}), std::vector{state}); }, "weighted_sum: states[0] must have the shape");
  const Var row = zeros({8});
  expect([&] { attention_residual(row, row, {}); }, "attention_residual: states must be one or more but are none");
  expect([&] { attention_residual(row, row, std::vector{Var(zeros({}))}); },
         "attention_residual: states must have shape [..., C] but states[0] is a scalar");
  expect(
      [&] {
        attention_residual(row, row, std::vector{x, state});
      },
      "attention_residual: states[1] must have the shape [2, 4, 8] of states[0] but has [2, 8]");
  expect([&] { attention_residual(none, row, std::vector{x}); },
         "attention_residual: query must have shape [8] to match states of [2, 4, 8] but has [3]");
  expect([&] { attention_residual_weights(row, none, std::vector{x}); },
         "attention_residual: norm must have shape [8] to match states of [2, 4, 8] but has [3]");
}

TEST(FusedOps, RejectTypesThatDoNotFitX) {
  const Var x = zeros({2, 4, 8}), map = zeros({4}, DType::f64), matrix = zeros({4, 4}, DType::f64);
  const Var f = zeros({2, 8}), row = zeros({8}), wide = zeros({8}, DType::f64), square = zeros({4, 4});
  const StreamMaps maps{map, map, matrix};
  for (const auto& [op, call] : std::vector<std::pair<std::string, std::function<void()>>>{
           {"read_streams", [&] { read_streams(map, x); }},
           {"read_streams", [&] { Streams(x).read(maps); }},
           {"write_streams", [&] { write_streams(matrix, zeros({4}), x, f); }},
           {"write_streams", [&] { write_streams(square, map, x, f); }},
           {"mix_streams", [&] { mix_streams(matrix, x); }},
           {"scale_groups", [&] { scale_groups(map, x); }},
           {"weighted_sum", [&] { weighted_sum(row, zeros({1}, DType::f64), std::vector{row}); }},
           {"attention_residual", [&] { attention_residual(row, wide, std::vector{x}); }}})
    EXPECT_EQ(message_of(call), op + ": inputs must have the same dtype but have f64 and f32");
  EXPECT_EQ(message_of([&] { read_streams(map, cast(x, DType::bf16)); }),
            "read_streams: h_pre must have dtype f32 for x of bf16 but has f64");
  EXPECT_THAT(
      [&] {
        attention_residual(zeros({8}), zeros({8}), std::vector{x, cast(x, DType::bf16)});
      },
      testing::ThrowsMessage<DTypeError>("attention_residual: inputs must have the same dtype but have f32 and bf16"));
  EXPECT_THROW(read_streams(zeros({4}, DType::i32), zeros({4, 8}, DType::i32)), DTypeError);
}

INSTANTIATE_TEST_SUITE_P(Ops, ComposedForms, testing::ValuesIn(fused_ops()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace braid::mhc::composed_forms_test

#include <braid/mhc/streams/telemetry.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connection.h>
#include <tests/mhc/support.h>
#include <tests/support.h>

namespace braid::mhc::telemetry_test {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::SizeIs;

StreamMaps mix(const Tensor& h_res, bool gated = false) {
  const std::int64_t n = h_res.size(-1);
  return {full({n}, 0.5, DType::f64), full({n}, 1, DType::f64), h_res, gated};
}

TEST(Telemetry, MeasuresGainsAndErrorsAveragedOverTokens) {
  Telemetry telemetry;
  // Row sums 3, 1 and 0, 1; column sums 1, 3 and -1, 2.
  const Tensor h = Tensor::of<double>({2, 2, 2}, {1, 2, 0, 1, -1, 1, 0, 1});
  telemetry.record(mix(h), zeros({2, 2, 3}, DType::f64));
  const ConnectionStats s = telemetry.connections().at(0);
  EXPECT_EQ(s.forward_gain, (3 + 1) / 2.0);
  EXPECT_EQ(s.backward_gain, (3 + 2) / 2.0);
  EXPECT_EQ(s.row_error, (2 + 1) / 2.0);
  EXPECT_EQ(s.column_error, (2 + 2) / 2.0);
  EXPECT_EQ(s.composed_forward_gain, s.forward_gain);
  EXPECT_EQ(s.composed_backward_gain, s.backward_gain);
}

TEST(Telemetry, ComposesGainsForwardFromTheFirstAndBackwardFromTheLast) {
  Telemetry telemetry;
  const Tensor a = Tensor::of<double>({2, 2}, {1, 2, 0, 1}), b = Tensor::of<double>({2, 2}, {1, 0, 3, 1});
  for (const Tensor& h : {a, b}) telemetry.record(mix(h), zeros({2, 3}, DType::f64));
  const std::vector<ConnectionStats> stats = telemetry.connections();
  // b a = [[1, 2], [3, 7]]
  EXPECT_EQ(stats[0].composed_forward_gain, 3);
  EXPECT_EQ(stats[1].composed_forward_gain, 10);
  EXPECT_EQ(stats[0].composed_backward_gain, 9);
  EXPECT_EQ(stats[1].composed_backward_gain, 4);
}

TEST(Telemetry, ComposesGainsOfEachStage) {
  const Tensor h = Tensor::of<double>({2, 2}, {1, 2, 0, 1});
  const auto of_tokens = [&](std::int64_t tokens) { return broadcast_to(h, {tokens, 2, 2}).value(); };
  const std::vector<std::pair<Tensor, Shape>> records{
      {h, {6, 2, 3}},
      {of_tokens(6), {6, 2, 3}},  // maps of all tokens, and of every one
      {of_tokens(4), {4, 2, 3}},
      {of_tokens(4), {4, 2, 3}},         // fewer tokens
      {of_tokens(4), {4, 2, 5}},         // more channels
      {eye(3, DType::f64), {4, 3, 5}}};  // more streams
  Telemetry telemetry;
  for (const auto& [h_res, streams] : records) telemetry.record(mix(h_res), zeros(streams, DType::f64));
  std::vector<double> forward, backward;
  std::vector<bool> begins;
  const std::vector<ConnectionStats> stats = telemetry.connections();
  for (const ConnectionStats& s : stats) {
    forward.push_back(s.composed_forward_gain);
    backward.push_back(s.composed_backward_gain);
    begins.push_back(s.begins_stage);
  }
  EXPECT_THAT(forward, ElementsAre(3, 5, 3, 5, 3, 1));  // h h = [[1, 4], [0, 1]]
  EXPECT_THAT(backward, ElementsAre(5, 3, 5, 3, 3, 1));
  EXPECT_THAT(begins, ElementsAre(true, false, true, false, true, true));
  std::vector<std::string> first_cells;
  for (std::istringstream lines(table(stats)); std::getline(lines, first_cells.emplace_back());)
    first_cells.back().resize(std::min<std::size_t>(first_cells.back().size(), 10));
  EXPECT_EQ(fmt::format("{}", fmt::join(first_cells | std::views::drop(2), "|")),
            "         0|         1||         2|         3||         4||         5|");
}

TEST(Telemetry, CountsSaturatedGates) {
  Telemetry telemetry;
  StreamMaps maps = mix(eye(2, DType::f64), true);
  maps.h_pre = Tensor::of<double>({2}, {0.001, 0.02});
  maps.h_post = Tensor::of<double>({2}, {1.0, 1.97});
  telemetry.record(maps, zeros({2, 3}, DType::f64));
  maps.h_post = Tensor::of<double>({2}, {1.99, 0.01});
  telemetry.record(maps, zeros({2, 3}, DType::f64));
  telemetry.record(mix(eye(2, DType::f64)), zeros({2, 3}, DType::f64));
  maps.post_magnitude = 4;
  maps.h_post = Tensor::of<double>({2}, {3.99, 1.99});
  telemetry.record(maps, zeros({2, 3}, DType::f64));
  maps.h_pre = Tensor::of<double>({2}, {0.01, 0.99});  // neither below nor above
  maps.h_post = Tensor::of<double>({2}, {0.04, 3.96});
  telemetry.record(maps, zeros({2, 3}, DType::f64));
  const std::vector<ConnectionStats> stats = telemetry.connections();
  EXPECT_THAT(stats[0].saturation, Optional(0.25));
  EXPECT_THAT(stats[3].saturation, Optional(0.5));
  EXPECT_THAT(stats[1].saturation, Optional(0.75));
  EXPECT_EQ(stats[2].saturation, std::nullopt);
  EXPECT_THAT(stats[4].saturation, Optional(0.0));
}

TEST(Telemetry, MeasuresHowAlikeStreamsAre) {
  const auto similarity = [](const Tensor& x) {
    Telemetry telemetry;
    telemetry.record(mix(eye(x.size(-2), DType::f64)), x);
    return telemetry.connections().at(0).similarity;
  };
  EXPECT_THAT(similarity(Tensor::of<double>({2, 2}, {1, 2, 2, 4})), Optional(DoubleNear(1, 1e-15)));
  EXPECT_THAT(similarity(Tensor::of<double>({2, 2}, {1, 0, 0, 3})), Optional(DoubleNear(0, 1e-15)));
  EXPECT_THAT(similarity(Tensor::of<double>({3, 1}, {1, 1, -2})), Optional(DoubleNear(-1.0 / 3, 1e-15)));
  EXPECT_EQ(similarity(ones({1, 4}, DType::f64)), std::nullopt);
  EXPECT_EQ(similarity(zeros({0, 2, 2}, DType::f64)), std::nullopt);
  EXPECT_THAT(similarity(zeros({3, 2, 2}, DType::f64)), Optional(0.0));  // no direction is like another
  EXPECT_THAT(similarity(Tensor::of<double>({2, 2}, {0, 0, 2, 0})), Optional(0.0));
  EXPECT_THAT(similarity(Tensor::of<double>({3, 1}, {2, 0, 5})), Optional(DoubleNear(1.0 / 3, 1e-15)));
}

TEST(Telemetry, ObservesEveryKindOfConnection) {
  Rng rng(1);
  const Tensor x = random({2, 3, 8}, rng);
  const std::set<std::string_view> sigmoids{"mhc", "manifold", "mhc-layer", "deepseek-v4", "hunyuan-v4", "single-pass"};
  for (const std::string_view kind : connection_names()) {
    Telemetry telemetry;
    std::vector<Connection> connections;
    const ConnectionConfig config{
        .kind = connection_kind(kind), .head = StreamHead::weighted, .sublayers = 5, .dtype = DType::f64};
    for (int i = 0; i < 5; ++i) connections.emplace_back(config, 8, i, rng);
    Connection::Stream stream = connections[0].open(x);
    for (const Connection& c : connections) stream = c(stream, [](const Var& h) { return tanh(h); });
    connections.back().close(stream);  // heads are no connections
    const std::vector<ConnectionStats> stats = telemetry.connections();
    ASSERT_THAT(stats, SizeIs(5)) << kind;
    const double gain = kind == "manifold" ? std::pow(0.5, 5) : 1;  // it halves the residual
    EXPECT_NEAR(stats.back().composed_forward_gain, gain, 1e-3) << kind;
    EXPECT_EQ(stats.back().saturation.has_value(), sigmoids.contains(kind)) << kind;
    EXPECT_EQ(std::ranges::count(stats, true, &ConnectionStats::begins_stage), 1) << kind;
  }
}

TEST(Telemetry, SaysThatNothingWasRecorded) {
  EXPECT_EQ(table(Telemetry().connections()), "no connection was recorded\n");
}

TEST(Telemetry, SeesTheSameMapsFusedAndComposed) {
  for (const std::string_view kind : connection_names()) {
    std::vector<double> saturations;
    for (const bool composed : {false, true}) {
      const Form form(composed);
      Rng rng(1);
      const Tensor x = random({2, 3, 8}, rng);
      const Connection c({.kind = connection_kind(kind), .phi_std = 5, .dtype = DType::f64}, 8, 0, rng);
      Telemetry telemetry;
      c(c.open(x), [](const Var& h) { return tanh(h); });
      saturations.push_back(telemetry.connections().at(0).saturation.value_or(-1));
    }
    EXPECT_EQ(saturations[0], saturations[1]) << kind;
  }
}

TEST(Telemetry, ChangesNothing) {
  for (const std::string_view kind : connection_names()) {
    Rng rng(1);
    const Connection c(ConnectionConfig{.kind = connection_kind(kind), .phi_std = 0.1}, 8, 0, rng);
    const Tensor x = randn({2, 3, 8}, rng);
    const auto run = [&] {
      Connection::Stream stream = c.open(x);
      for (int i = 0; i < 3; ++i) stream = c(stream, [](const Var& h) { return tanh(h); });
      return c.close(stream).value();
    };
    const Tensor alone = run();
    const Telemetry telemetry;
    EXPECT_TRUE(identical(run(), alone)) << kind;
  }
}

TEST(Telemetry, SeesStreamsThatAreCopies) {
  Rng rng(1);
  const ManifoldConstrainedHC c(8, 4, rng, {.dtype = DType::f64});
  Telemetry telemetry;
  c(c.open(random({2, 8}, rng)), [](const Var& h) { return tanh(h); });
  EXPECT_THAT(telemetry.connections()[0].similarity, Optional(DoubleNear(1, 1e-14)));
  EXPECT_THAT(telemetry.connections()[0].saturation, Optional(DoubleEq(0)));
}

TEST(Telemetry, ListensOnlyWhileItIsAlive) {
  EXPECT_EQ(Telemetry::active(), nullptr);
  {
    const Telemetry outer;
    {
      const Telemetry inner;
      EXPECT_EQ(Telemetry::active(), &inner);
    }
    EXPECT_EQ(Telemetry::active(), &outer);
  }
  EXPECT_EQ(Telemetry::active(), nullptr);
}

TEST(Telemetry, PrintsATable) {
  Telemetry telemetry;
  telemetry.record(mix(eye(2, DType::f64)), Tensor::of<double>({2, 1}, {1, 1}));
  telemetry.record(mix(eye(2, DType::f64)), Tensor::of<double>({2, 1}, {1, 1}));
  const std::vector<ConnectionStats> stats = telemetry.connections();
  EXPECT_THAT(table(stats), HasSubstr("         1          1          1          1          1"));
  const ConnectionStats other{2, 3, 4, 5, 0.25, 0.5, 0.125, 0.75, true};
  EXPECT_THAT(table(std::vector{other}),
              HasSubstr("\n         0          2          3          4          5       0.25        0.5      0.125"
                        "       0.75\n"));
}

}  // namespace
}  // namespace braid::mhc::telemetry_test

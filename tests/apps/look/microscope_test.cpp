#include "../../../apps/look/microscope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <tests/mhc/support.h>

#include "../../../apps/look/losses.h"
#include "../../../apps/look/measures.h"
#include "../../../apps/look/prediction.h"

namespace braid::look::microscope_test {
namespace {

using mhc::largest_difference;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kVocab = 13, kTokens = 6, kConnections = 6;
const char* const kKinds[] = {"residual",   "hc",    "mhc",         "mhc-layer",   "deepseek-v4",
                              "hunyuan-v4", "gated", "single-pass", "layer-scale", "rezero"};

bool has_one_stream(const std::string& kind) { return kind == "residual" || kind == "layer-scale" || kind == "rezero"; }

/// A model of three blocks in f64 with weights away from their start.
apps::Model small_model(const std::string& kind, const std::string& head = "own", bool hc_static = false,
                        bool value_residual = false) {
  Rng rng(3);
  apps::TrainerSettings settings{.layers = 3, .channels = 8, .heads = 2, .context = 10};
  settings.connection.kind = kind;
  settings.connection.head = head;
  settings.connection.hc_static = hc_static;
  settings.connection.phi_std = 0.3;
  settings.connection.alpha = 1;
  settings.dtype = DType::f32;
  settings.value_residual = value_residual;
  apps::Model model = apps::make_model(settings, kVocab, rng);
  for_each_param(model, [&](const std::string&, Var& parameter) {
    parameter = (Var(parameter.value().to(DType::f64)) + mhc::random(parameter.shape(), rng, 0.3)).value();
  });
  return model;
}

const Tensor kText = Tensor::of<std::int32_t>({1, kTokens}, {3, 1, 4, 1, 5, 9});

/// The values of interventions, without sites that were left open.
std::vector<Intervention> changes_of(const std::vector<std::pair<std::string, std::string>>& list,
                                     std::int64_t streams = 4) {
  std::vector<Intervention> changes;
  for (const auto& [verb, value] : list) {
    changes.push_back(parse_intervention(verb, value));
    complete(changes.back(), streams, kConnections);
  }
  return changes;
}

TEST(Microscope, ChangesNoBitWithoutChanges) {
  for (const std::string kind : kKinds)
    for (const std::string head : {"own", "sum", "weighted", "gated"}) {
      const apps::Model model = small_model(kind, head);
      const Seen seen = evaluate(model, kText);
      EXPECT_TRUE(identical(seen.logits, model.logits(kText).value().select(0, 0))) << kind << " " << head;
      EXPECT_TRUE(identical(read_by_head(model, seen.sites.back()), seen.logits)) << kind << " " << head;
    }
}

TEST(Microscope, PassesTheFirstValuesOn) {
  const apps::Model model = small_model("mhc", "own", /*hc_static=*/false, /*value_residual=*/true);
  EXPECT_TRUE(identical(evaluate(model, kText).logits, model.logits(kText).value().select(0, 0)));
}

TEST(Microscope, SeesWhatTheEquationsOfHyperConnectionsSay) {
  for (const std::string kind : kKinds) {
    const Seen seen = evaluate(small_model(kind), kText);
    ASSERT_EQ(std::ssize(seen.sites), kConnections + 1);
    for (std::int64_t i = 0; i < kConnections; ++i) {
      const Site& site = seen.sites[static_cast<std::size_t>(i)];
      const Var after = matmul(site.h_res, site.x) + expand_dims(site.h_post, -1) * expand_dims(site.f, 1);
      const Tensor next = seen.sites[static_cast<std::size_t>(i + 1)].x;
      EXPECT_LE(largest_difference(after.value(), next), 1e-12) << kind << " site " << i;
      EXPECT_EQ(site.h_pre.defined(), kind != "gated");
      if (kind == "gated") continue;
      const Var input = sum(expand_dims(site.h_pre, -1) * site.x, {1});
      EXPECT_LE(largest_difference(input.value(), site.u), 1e-12) << kind << " site " << i;
    }
  }
}

TEST(Microscope, KnowsTheWeightsOfHeadsWithoutParameters) {
  const auto weights = [](const char* kind, const char* head) {
    return evaluate(small_model(kind, head), kText).sites.back().h_pre;
  };
  EXPECT_TRUE(identical(weights("mhc", "own"), full({kTokens, 4}, 0.25, DType::f64)));
  EXPECT_TRUE(identical(weights("hc", "sum"), ones({kTokens, 4}, DType::f64)));
  EXPECT_TRUE(identical(weights("residual", "own"), ones({kTokens, 1}, DType::f64)));
  EXPECT_FALSE(weights("mhc", "weighted").defined());
  const apps::Model model = small_model("single-pass");
  const Site head = evaluate(model, kText).sites.back();
  const Var read = sum(expand_dims(head.h_pre, -1) * head.x, {1});
  EXPECT_LE(largest_difference(model.predict(read).value(), evaluate(model, kText).logits), 1e-12);
}

TEST(Microscope, AblatesStreamsAsMaskedStreamsDo) {
  const apps::Model model = small_model("mhc");
  const Seen seen = evaluate(model, kText, changes_of({{"ablate", "stream:2@3-4"}, {"scale", "stream:0@4:0.5"}}));
  const Seen clean = evaluate(model, kText);
  mhc::Connection::Stream stream = model.blocks.front().attention.connection.open(model.embed(kText));
  const Tensor third = Tensor::of<double>({4, 1}, {1, 1, 0, 1}), fourth = Tensor::of<double>({4, 1}, {0.5, 1, 0, 1});
  const auto masked = [&](const Tensor& mask) { stream = mhc::Streams(mhc::value(stream) * mask); };
  stream = model.blocks[0](stream, kText);
  stream = model.blocks[1].attention(stream);
  masked(third);
  stream = model.blocks[1].mlp(stream);
  masked(fourth);
  stream = model.blocks[2](stream, kText);
  EXPECT_TRUE(identical(squeeze(mhc::value(stream), 0).value(), seen.sites.back().x));
  EXPECT_TRUE(identical(seen.sites[2].x, clean.sites[2].x));
  EXPECT_FALSE(identical(seen.sites[5].x, clean.sites[5].x));
}

TEST(Microscope, SwapsThatCancelAndFullRescuesChangeNoBit) {
  for (const std::string kind : kKinds) {
    if (has_one_stream(kind)) continue;
    const apps::Model model = small_model(kind);
    const Seen clean = evaluate(model, kText);
    const auto logits = [&](const std::vector<std::pair<std::string, std::string>>& list) {
      return evaluate(model, kText, changes_of(list), &clean).logits;
    };
    const std::pair<std::string, std::string> swap{"swap", "stream:0:3@2"}, ablate{"ablate", "stream:1@2-5"};
    EXPECT_TRUE(identical(logits({swap, swap}), clean.logits)) << kind;
    EXPECT_FALSE(identical(logits({swap}), clean.logits)) << kind;
    EXPECT_FALSE(identical(logits({ablate}), clean.logits)) << kind;
    EXPECT_TRUE(identical(logits({ablate, {"rescue", "stream:1@2-5"}}), clean.logits)) << kind;
    EXPECT_TRUE(identical(logits({{"ablate", "write:2"}, {"rescue", "write:2"}}), clean.logits)) << kind;
  }
}

TEST(Microscope, LeavesOutAWrite) {
  for (const std::string kind : kKinds) {
    const std::int64_t n = has_one_stream(kind) ? 1 : 4;
    const Seen seen = evaluate(small_model(kind), kText, changes_of({{"ablate", "write:2"}}, n));
    const Site& site = seen.sites[2];
    EXPECT_LE(largest_difference(matmul(site.h_res, site.x).value(), seen.sites[3].x), 1e-12) << kind;
    EXPECT_TRUE(identical(site.f, zeros(site.f.shape(), site.f.dtype()))) << kind;
  }
}

/// The gain of a path, site by site.
Tensor gain_of(const Seen& seen, std::size_t from, std::size_t to) {
  Tensor weights = seen.sites[from].h_post;
  for (std::size_t i = from + 1; i < to; ++i) weights = carried(seen.sites[i], weights);
  return gain(seen.sites[to], weights);
}

// With static maps and the writes in between held, a layer's output reaches a later input by the path alone.
TEST(Microscope, GainsOfPathsAreDerivatives) {
  for (const char* kind : {"residual", "hc", "mhc-layer"}) {
    const apps::Model model = small_model(kind, "own", /*hc_static=*/true);
    const std::int64_t n = kind == std::string("residual") ? 1 : 4;
    const Seen clean = evaluate(model, kText);
    for (const std::size_t to : {2, 4, 5}) {
      std::vector<std::pair<std::string, std::string>> list{{"scale", "write:1:1.001"}};
      for (std::size_t i = 2; i < to; ++i) list.emplace_back("rescue", fmt::format("write:{}", i));
      const Seen moved = evaluate(model, kText, changes_of(list, n), &clean);
      const Var difference = Var(moved.sites[to].u) - clean.sites[to].u;
      const Var expected = 0.001 * expand_dims(gain_of(clean, 1, to), -1) * clean.sites[1].f;
      EXPECT_LE(largest_difference(difference.value(), expected.value()), 1e-12) << kind << " to " << to;
      EXPECT_GT(largest_difference(difference.value(), zeros(difference.shape(), DType::f64)), 1e-6) << kind;
    }
  }
}

TEST(Microscope, GainsAreProductsOfMaps) {
  const Seen seen = evaluate(small_model("mhc"), kText);
  const auto at = [](const Tensor& map, std::int64_t token) { return map.select(0, token); };
  for (std::int64_t token = 0; token < kTokens; ++token) {
    const Var carried_by_hand =
        matmul(at(seen.sites[3].h_res, token),
               matmul(at(seen.sites[2].h_res, token), expand_dims(at(seen.sites[1].h_post, token), -1)));
    const Var by_hand = matmul(expand_dims(at(seen.sites[4].h_pre, token), 0), carried_by_hand);
    EXPECT_NEAR(by_hand.value().item(), gain_of(seen, 1, 4).select(0, token).item(), 1e-14);
  }
}

TEST(Microscope, ChangesASinglePath) {
  for (const std::string kind : {"residual", "mhc", "single-pass"}) {
    const apps::Model model = small_model(kind);
    const std::int64_t n = kind == "residual" ? 1 : 4;
    const Seen clean = evaluate(model, kText);
    const Seen seen = evaluate(model, kText, changes_of({{"scale", "path:1:4:0.25"}}, n));
    const Var path = expand_dims(gain_of(clean, 1, 4), -1) * clean.sites[1].f;
    EXPECT_LE(largest_difference(seen.sites[4].u, (Var(clean.sites[4].u) - 0.75 * path).value()), 1e-12) << kind;
    EXPECT_TRUE(identical(seen.sites[4].x, clean.sites[4].x)) << kind;  // the streams have what was written
    const auto rescued =
        changes_of({{"ablate", "write:1"}, {"rescue", "path:1:4"}, {"rescue", "write:2"}, {"rescue", "write:3"}}, n);
    const Seen one_path = evaluate(model, kText, rescued, &clean);
    const Seen none = evaluate(model, kText, std::span(rescued).first(1), &clean);
    EXPECT_FALSE(identical(one_path.sites[4].u, none.sites[4].u)) << kind;
    const double rest = largest_difference(one_path.sites[4].u, clean.sites[4].u);
    EXPECT_EQ(rest <= 1e-12, kind == "residual") << rest;  // whose maps do not follow the streams
    const Tensor to_head = evaluate(model, kText, changes_of({{"ablate", "path:5:6"}}, n)).logits;
    const Tensor read = evaluate(model, kText, changes_of({{"ablate", "write:5"}}, n)).logits;
    EXPECT_LE(largest_difference(to_head, read), 1e-12) << kind;  // the last output has no other way
  }
  EXPECT_THAT(
      [] {
        evaluate(small_model("gated"), kText, changes_of({{"ablate", "path:0:1"}}));
      },
      ThrowsMessage<ValueError>("--ablate path:0:1: the input of site 1 is no weighted sum of the streams"));
}

TEST(Microscope, MultipliesScalesAndRescuesLast) {
  const apps::Model model = small_model("mhc");
  const Seen clean = evaluate(model, kText);
  const auto input = [&](const std::vector<std::pair<std::string, std::string>>& list) {
    return evaluate(model, kText, changes_of(list), &clean).sites[4].u;
  };
  for (const std::string target : {"write:1", "path:1:4", "stream:1@3"}) {
    const Tensor twice = input({{"scale", target + ":0.5"}, {"scale", target + ":3"}});
    EXPECT_LE(largest_difference(twice, input({{"scale", target + ":1.5"}})), 1e-12) << target;
    const Tensor rescued = input({{"rescue", target}, {"scale", target + ":3"}});
    EXPECT_LE(largest_difference(rescued, clean.sites[4].u), 1e-12) << target;
  }
}

TEST(Microscope, NeedsStreams) {
  EXPECT_THAT([] { check_has_streams(small_model("skip")); }, ThrowsMessage<ValueError>(HasSubstr("but has skip")));
  for (const char* kind : {"manifold", "skip", "attention-residual", "frac", "laurel"})
    EXPECT_THROW(check_has_streams(small_model(kind)), ValueError) << kind;
  for (const char* kind : {"residual", "layer-scale", "rezero"})
    EXPECT_NO_THROW(check_has_streams(small_model(kind))) << kind;
}

TEST(Losses, OfAblationsAreThoseOfTheirChanges) {
  const apps::Model model = small_model("mhc");
  const Text text{kText, {1, 4, 1, 5, 9, 2}};
  const Seen clean = evaluate(model, kText);
  std::int64_t count = 0;
  const auto all = ablations(model, text, clean, [&] { ++count; });
  EXPECT_EQ(count, ablation_count(4, kConnections));
  const auto expected = [&](const std::vector<std::pair<std::string, std::string>>& list) {
    return rounded(loss(model, text, clean, changes_of(list)));
  };
  EXPECT_EQ(all["once"][2][3], expected({{"ablate", "stream:2@3"}}));
  EXPECT_EQ(all["onward"][2][3], expected({{"ablate", "stream:2@3-6"}}));
  EXPECT_EQ(all["write"][4], expected({{"ablate", "write:4"}}));
  std::vector<std::pair<std::string, std::string>> none;
  for (int i = 0; i < 4; ++i) none.emplace_back("ablate", fmt::format("stream:{}@5", i));
  EXPECT_EQ(all["all"][5], expected(none));
  none.emplace_back("rescue", "stream:1@5");
  EXPECT_EQ(all["alone"][1][5], expected(none));
}

TEST(Losses, OfRescuesSayHowMuchComesBack) {
  const apps::Model model = small_model("mhc");
  const Text text{kText, {1, 4, 1, 5, 9, 2}};
  const Seen clean = evaluate(model, kText);
  const double without = mean_loss(predictions(clean.logits, text.targets, 0));
  const auto rows = chosen(
      model, text, clean, without,
      changes_of({{"ablate", "stream:2@3"}, {"scale", "write:1:3"}, {"rescue", "stream:2@3"}, {"rescue", "write:1"}}));
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0]["what"], "ablate stream:2@3");
  EXPECT_EQ(rows[2]["what"], "all 2 changes");
  EXPECT_EQ(rows[2]["recovered"], nullptr);
  EXPECT_EQ(rows[4]["what"], "rescue write:1");
  EXPECT_EQ(rows[4]["loss"], rows[0]["loss"]);
  EXPECT_EQ(rows[5]["what"], "all 2 rescues");
  EXPECT_EQ(rows[5]["recovered"], 1.0);
}

TEST(Prediction, IsTheSoftmaxOfEachRow) {
  const Tensor logits = Tensor::of<double>({2, 3}, {0, std::log(2), 0, 1, 1, 1});
  const std::vector<Prediction> rows = predictions(logits, std::vector<std::int32_t>{1, 2}, 2);
  EXPECT_NEAR(rows[0].loss, std::log(2), 1e-15);
  EXPECT_EQ(rows[0].likely[0].first, 1);
  EXPECT_NEAR(rows[0].likely[1].second, 0.25, 1e-15);
  EXPECT_EQ(rows[0].likely[1].first, 0);  // of equal ones the first
  EXPECT_NEAR(mean_loss(rows), (std::log(2) + std::log(3)) / 2, 1e-15);
  EXPECT_EQ(predictions(logits, std::vector<std::int32_t>{1, 2}, 1)[0].likely.size(), 1U);
}

}  // namespace
}  // namespace braid::look::microscope_test

#include <braid/mhc/connections/released/load_save.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/mhc/connections/released/released_connection.h>
#include <braid/mhc/connections/released/weighted_head.h>
#include <tests/mhc/support.h>

namespace braid::mhc::load_save_test {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

ReleasedConnection connection(std::uint64_t seed, double eps = 1e-6) {
  Rng rng(seed);
  ReleasedConnection c = deepseek_v4(5, 4, rng, {.hc_eps = eps, .dtype = DType::f64});
  randomize(c, rng);
  return c;
}

std::vector<std::string> names_of(const nn::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(LoadConnection, KnowsTheNamesOfCheckpointsAndOfTransformers) {
  nn::NamedTensors tensors;
  save_connection(tensors, connection_prefix(CheckpointNames::native, 3, Sublayer::attention), connection(1));
  save_connection(tensors, head_prefix(CheckpointNames::native), WeightedHead(5, 4));
  EXPECT_THAT(names_of(tensors), ElementsAre("hc_head_base", "hc_head_fn", "hc_head_scale", "layers.3.hc_attn_base",
                                             "layers.3.hc_attn_fn", "layers.3.hc_attn_scale"));
  tensors.clear();
  save_connection(tensors, connection_prefix(CheckpointNames::hugging_face, 0, Sublayer::mlp), connection(1));
  save_connection(tensors, head_prefix(CheckpointNames::hugging_face), WeightedHead(5, 4));
  EXPECT_THAT(names_of(tensors),
              ElementsAre("model.hc_head.hc_base", "model.hc_head.hc_fn", "model.hc_head.hc_scale",
                          "model.layers.0.ffn_hc.base", "model.layers.0.ffn_hc.fn", "model.layers.0.ffn_hc.scale"));
}

TEST(LoadConnection, ReadsWhatWasSaved) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "braid_connection.safetensors";
  const ReleasedConnection saved = connection(1);
  save_connection(file, "layers.3.hc_attn_", saved);
  ReleasedConnection loaded = connection(2);
  load_connection(file, "layers.3.hc_attn_", loaded);
  EXPECT_TRUE(identical(loaded.maps.fn.value(), saved.maps.fn.value()));
  EXPECT_TRUE(identical(loaded.maps.scale.value(), saved.maps.scale.value()));
}

TEST(LoadConnection, GivesMHCTheSameMaps) {
  Rng rng(3);
  const ReleasedConnection saved = connection(1, 0);
  nn::NamedTensors tensors;
  save_connection(tensors, "a.", saved);
  ManifoldConstrainedHC loaded(5, 4, rng, {.dtype = DType::f64});
  load_connection(tensors, "a.", loaded);
  const Tensor x = random({7, 4, 5}, rng);
  const auto layer = [](const Var& u) { return tanh(u); };
  EXPECT_LT(largest_difference(loaded(x, layer).value(), saved(x, layer).value()), 1e-13);

  nn::NamedTensors again;
  save_connection(again, "a.", loaded);
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(identical(again.at(name), tensor)) << name;
}

TEST(LoadConnection, ListsAllThatDoesNotFitAndChangesNothing) {
  ReleasedConnection c = connection(1);
  const Tensor before = c.maps.scale.value().clone();
  nn::NamedTensors tensors{
      {"a.fn", zeros({24, 21})}, {"a.scale", zeros({3})}, {"a.gain", zeros({1})}, {"b.x", zeros({1})}};
  EXPECT_THAT(
      [&] { load_connection(tensors, "a.", c); },
      ThrowsMessage<Error>("load_connection: a.fn must have shape [24, 20] but has [24, 21], a.base is missing, "
                           "a.gain is unexpected"));
  EXPECT_TRUE(identical(c.maps.scale.value(), before));
  Rng rng;
  ManifoldConstrainedHC rows(5, 4, rng, {.mixing = "rows"});
  EXPECT_THAT([&] { load_connection(tensors, "a.", rows); },
              ThrowsMessage<ValueError>("load_connection: mixing must be sinkhorn but is rows"));
}

}  // namespace
}  // namespace braid::mhc::load_save_test

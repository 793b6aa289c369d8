// DeepSeek-V4, the family with connections of its own; tests/nn/pretrained has the others.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/files/safetensors.h>
#include <braid/mhc/connection.h>
#include <braid/nn/pretrained/pretrained.h>

#include "tests/mhc/support.h"
#include "tests/nn/module_checks.h"
#include "tests/support.h"
#include "tests/throws.h"

namespace braid::mhc::pretrained_test {
namespace {

namespace fs = std::filesystem;
using Model = nn::Transformer<Connection>;
using testing::HasSubstr;

nn::TransformerConfig deepseek_v4() {
  nn::TransformerConfig config{.vocab = 13,
                               .context = 200,
                               .channels = 12,
                               .layers = 4,
                               .heads = 4,
                               .hidden = 5,
                               .kv_heads = 1,
                               .head_size = 10,
                               .norm_eps = 1e-5,
                               .positions = nn::PositionKind::rotary,
                               .rotary_base = 500,
                               .window = 7,
                               .qk_norm = true,
                               .activation = nn::Activation::swiglu,
                               .mlp_bias = false,
                               .padding = 3};
  config.mlp_limit = 0.75;
  config.rotary_share = 0.4;
  config.attention_sinks = config.shared_kv = true;
  config.query_rank = 6;
  config.output_groups = 2;
  config.output_rank = 3;
  const nn::CompressionSettings sparse{
      .rate = 3, .overlapping = true, .index_heads = 2, .index_size = 8, .index_top = 4};
  config.compressions = {{.rate = 5}, sparse, {}, sparse};
  config.compressed_rotary_base = 7000;
  config.compressed_rotary_scaling = {
      .kind = nn::RotaryScaling::Kind::yarn, .factor = 4, .first_context = 16, .fast = 32, .magnitude = 1};
  config.experts = nn::ExpertsSettings{
      .experts = 3, .top = 2, .shared = 1, .routing = nn::Routing::sqrt_softplus, .scale = 1.25, .correction = true};
  config.token_routed = 2;
  config.streams = nn::StreamsSettings{.streams = 3, .sinkhorn_iterations = 5, .eps = 1e-5};
  return config;
}

/// With parameters of order one.
Model model_of(nn::TransformerConfig config, DType dtype = DType::f32) {
  Rng rng(1);
  config.dtype = dtype;
  Model model(config, rng, [&](int i) { return pretrained_connection(config, i); });
  for_each_param(model, [&](const std::string&, Var& p) { p = randn(p.shape(), rng, dtype); });
  return model;
}

/// Each test has an empty folder of its own.
struct DeepSeekV4 : testing::Test {
  DeepSeekV4() { fs::create_directories(folder); }
  ~DeepSeekV4() override { fs::remove_all(folder); }

  std::string complaint() const {
    const std::string prefix = "load_pretrained: " + folder.string(),
                      message = message_of([&] { nn::load_pretrained(folder, pretrained_connection); });
    EXPECT_THAT(message, testing::StartsWith(prefix));
    return message.substr(std::min(message.size(), prefix.size()));
  }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_deepseek_v4_" + test);
};

nn::TransformerConfig parsed(const std::string& settings) {
  return nn::parse_pretrained_config("here", R"({"model_type": "deepseek_v4", )" + settings + "}").config;
}

TEST_F(DeepSeekV4, ReadsEveryBitThatItWrote) {
  const Tensor tokens = Tensor::of<std::int32_t>({2, 4}, {1, 10, 4, 3, 0, 0, 7, 3});
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::uint64_t shard : {std::uint64_t{5000}, nn::SavePretrained().max_shard_bytes}) {
      const Model model = model_of(deepseek_v4(), dtype);
      save_pretrained(model, folder, {.max_shard_bytes = shard});
      const Model loaded = nn::load_pretrained(folder, pretrained_connection, {.dtype = dtype});
      EXPECT_EQ(loaded.config, model.config);
      const nn::NamedTensors before = nn::to_tensors(model), after = nn::to_tensors(loaded);
      ASSERT_EQ(before.size(), after.size());
      for (const auto& [name, tensor] : before) EXPECT_TRUE(identical(tensor, after.at(name))) << name;
      EXPECT_TRUE(identical(loaded.logits(tokens).value(), model.logits(tokens).value()));
      fs::remove_all(folder);
    }
}

TEST_F(DeepSeekV4, ContinuesACacheWithTheBitsOfTheWhole) {
  Rng rng(2);
  const Model model = model_of(deepseek_v4());
  const Tensor tokens = randint(0, 13, {2, 200}, rng);
  const BatchInvariant same_bits;
  const Tensor whole = model.logits(tokens).value();
  nn::KVCache cache = model.make_cache(2);
  for (std::int64_t next = 1; cache.length < 200; next = std::min(1 + cache.length % 40, 200 - cache.length)) {
    const Tensor logits = model.next_logits(tokens.slice(1, cache.length, cache.length + next).clone(), cache);
    ASSERT_TRUE(identical(logits, whole.select(1, cache.length - 1).clone())) << cache.length;
  }
}

TEST_F(DeepSeekV4, LeavesOutThePartsThatPredictFurtherTokens) {
  const Model model = model_of(deepseek_v4());
  save_pretrained(model, folder);
  const fs::path weights = folder / "model.safetensors";
  SafetensorsFile file = load_safetensors(weights);
  file.tensors.emplace("mtp.0.norm.weight", ones({12}));
  save_safetensors(weights, file.tensors, file.metadata);
  EXPECT_EQ(param_names(nn::load_pretrained(folder, pretrained_connection)), param_names(model));
}

TEST_F(DeepSeekV4, HasConnectionsWithTheEpsOfTheFile) {
  nn::TransformerConfig config = deepseek_v4();
  config.norm_eps = 0.25;
  config.streams->eps = 0.125;
  config.streams->sinkhorn_iterations = 3;
  const auto maps = std::get<ReleasedConnection>(pretrained_connection(config, 0).module).maps;
  EXPECT_EQ(maps.norm_eps, 0.25);
  EXPECT_EQ(maps.pre_eps, 0.125);
}

TEST_F(DeepSeekV4, HasTheDefaultsOfTransformers) {
  const nn::TransformerConfig c = parsed(R"("tie_word_embeddings": false)");
  EXPECT_EQ((std::vector<std::int64_t>{c.vocab, c.context, c.channels, *c.hidden, *c.head_size, c.window}),
            (std::vector<std::int64_t>{129280, 1048576, 4096, 2048, 512, 128}));
  EXPECT_EQ((std::vector<std::int64_t>{c.layers, c.heads, *c.kv_heads, c.query_rank, c.output_groups, c.output_rank}),
            (std::vector<std::int64_t>{43, 64, 1, 1024, 8, 1024}));
  EXPECT_EQ((std::vector<double>{c.rotary_share, c.rotary_base, c.compressed_rotary_base, c.mlp_limit, c.norm_eps}),
            (std::vector<double>{0.125, 10000, 160000, 10, 1e-6}));
  EXPECT_EQ(c.experts, (nn::ExpertsSettings{.experts = 256,
                                            .top = 6,
                                            .shared = 1,
                                            .routing = nn::Routing::sqrt_softplus,
                                            .scale = 1.5,
                                            .correction = true}));
  EXPECT_EQ(c.token_routed, 3);
  EXPECT_EQ(c.streams, nn::StreamsSettings());
  ASSERT_EQ(c.compressions.size(), 43u);
  const nn::CompressionSettings heavy{.rate = 128},
      sparse{.rate = 4, .overlapping = true, .index_heads = 64, .index_size = 128, .index_top = 512};
  for (std::size_t i = 0; i < 43; ++i) EXPECT_EQ(c.compressions[i], i < 2 || i % 2 == 0 ? heavy : sparse) << i;
}

TEST_F(DeepSeekV4, ReadsTheSettingsOfOlderFiles) {
  const nn::TransformerConfig c = parsed(R"("num_hidden_layers": 2, "compress_ratios": [0, 4, 0], "num_hash_layers": 0,
      "compress_rate_csa": 6, "head_dim": 16, "qk_rope_head_dim": 4, "compress_rope_theta": 900,
      "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 64})");
  EXPECT_EQ(c.compressions[0].rate, 0);
  EXPECT_EQ(c.compressions[1].rate, 6);
  EXPECT_EQ(c.compressions.size(), 2u);
  EXPECT_EQ(c.token_routed, 0);
  EXPECT_EQ(c.rotary_share, 0.25);
  EXPECT_EQ(c.rotary_scaling.kind, nn::RotaryScaling::Kind::none);
  EXPECT_EQ(c.compressed_rotary_base, 900);
  EXPECT_EQ(c.compressed_rotary_scaling.factor, 4);
  EXPECT_EQ(c.compressed_rotary_scaling.magnitude, 1);
  EXPECT_EQ(parsed(R"("num_hidden_layers": 2)").token_routed, 2);
}

TEST_F(DeepSeekV4, RefusesWhatItDoesNotKnowOrWouldNotFit) {
  for (const auto& [settings, message] : std::vector<std::pair<const char*, const char*>>{
           {R"("scoring_func": "tanh")",
            "here: 'scoring_func' must be one of softmax, sigmoid, sqrtsoftplus but is 'tanh'"},
           {R"("num_hidden_layers": 2, "layer_types": ["sliding_attention"])",
            "here: 'layer_types' must be a list with a kind for each of 2 layers but is a list"},
           {R"("num_hidden_layers": 1, "layer_types": ["full_attention"])",
            "here: 'layer_types' must be one of sliding_attention, compressed_sparse_attention, "
            "heavily_compressed_attention for each layer, not 'full_attention', but is a list"},
           {R"("num_hidden_layers": 2, "mlp_layer_types": ["moe", "hash_moe"])",
            "here: 'mlp_layer_types' must be hash_moe for the first layers only but is a list"},
           {R"("num_hidden_layers": 1001)", "here: 'num_hidden_layers' must be at most 1000 but is 1001"},
           {R"("hc_sinkhorn_iters": 1001)", "here: 'hc_sinkhorn_iters' must be at most 1000 but is 1001"},
           {R"("num_hidden_layers": 1, "compress_ratios": [8])",
            "here: 'compress_ratios' must be one of 0, 4, 128 for each layer, not 8, but is a list"},
           {R"("hc_mult": 65)", "here: 'hc_mult' must be at most 64 but is 65"},
           {R"("n_shared_experts": 2)", "here: 'n_shared_experts' must be 1, the only supported value, but is 2"},
           {R"("norm_topk_prob": false)",
            "here: 'norm_topk_prob' must be true, the only supported value, but is false"},
           {R"("num_key_value_heads": 2)", "here: 'num_key_value_heads' must be 1, the only supported value, but is 2"},
           {R"("compress_rates": 4)", "here: 'compress_rates' must be an object but is 4"},
           {R"("num_experts_per_tok": 257)",
            "here: Experts: top must be in [1, 256], the number of experts, but is 257"},
           {R"("pad_token_id": 129280)",
            "here: 'pad_token_id' must be an integer from -129280 to 129279 but is 129280"},
           {R"("rope_parameters": {"main": {"rope_type": "default", "partial_rotary_factor": 0.5},
                                   "compress": {"rope_type": "default"}}, "head_dim": 4)",
            "nothing was thrown"},
           {R"("rope_parameters": {"main": {}, "compress": {"partial_rotary_factor": 0.25}}, "head_dim": 8)",
            "here: rope_parameters: 'partial_rotary_factor' must be that of 'main', 0.125, but is 0.25"},
           {R"("quantization_config": {})",
            "here: 'quantization_config' must be absent, since quantized models are not supported, but is an object"}})
    EXPECT_EQ(message_of([&] { parsed(settings); }), message) << settings;
  EXPECT_EQ(
      parsed(R"("num_hidden_layers": 1000, "hc_mult": 64, "hc_sinkhorn_iters": 1000, "pad_token_id": -1)").padding,
      129279);

  const Model model = model_of(deepseek_v4());
  save_pretrained(model, folder);
  EXPECT_THAT(throws<ValueError>("nn::load_pretrained", [&] { nn::load_pretrained(folder); }),
              HasSubstr("the model has hyper-connections, which mhc::pretrained_connection makes, but got none"));
  Rng rng;
  const auto others = [&](const nn::TransformerConfig& config, int i) {
    return Connection({.kind = ConnectionKind::mhc, .streams = 3}, config.channels, i, rng);
  };
  EXPECT_THAT(throws<Error>("nn::load_pretrained", [&] { nn::load_pretrained(folder, others); }),
              HasSubstr("the model's family has no blocks.0.attention.connection.alpha"));
  EXPECT_EQ(
      message_of([&] { save_pretrained(nn::Transformer<>(deepseek_v4(), rng), folder / "x"); }),
      "save_pretrained: the connections must be those that mhc::pretrained_connection makes; nn::save_module saves a "
      "model with any");
  EXPECT_FALSE(fs::exists(folder / "x"));
  const fs::path weights = folder / "model.safetensors";
  nn::NamedTensors tensors = load_safetensors(weights).tensors;
  Tensor& table = tensors.at("model.layers.1.ffn.gate.tid2eid");
  table = table.clone();
  table.mutable_data<std::int32_t>()[5] = 3;
  save_safetensors(weights, tensors);
  EXPECT_EQ(complaint(), ": model.layers.1.ffn.gate.tid2eid must name experts from 0 to 2 but has 3");
  table = ones(table.shape());
  save_safetensors(weights, tensors);
  EXPECT_EQ(complaint(), ": model.layers.1.ffn.gate.tid2eid must be I32 or I64 but is F32");
}

TEST_F(DeepSeekV4, TakesNoMemoryForSizesThatNoFileHolds) {
  save_pretrained(model_of(deepseek_v4()), folder);
  std::stringstream text;
  text << std::ifstream(folder / "config.json").rdbuf();
  for (const auto& [from, to] : std::vector<std::pair<const char*, const char*>>{
           {R"("q_lora_rank": 6)", R"("q_lora_rank": 2147483647)"},
           {R"("index_head_dim": 8)", R"("index_head_dim": 2147483646)"},
           {R"("heavily_compressed_attention": 5)", R"("heavily_compressed_attention": 2147483647)"},
           {R"("o_lora_rank": 3)", R"("o_lora_rank": 2147483647)"},
           {R"("head_dim": 10)", R"("head_dim": 2147483640)"},
           {R"("n_routed_experts": 3)", R"("n_routed_experts": 2147483647)"},
           {R"("vocab_size": 13)", R"("vocab_size": 2147483647)"},
           {R"("hc_mult": 3)", R"("hc_mult": 64)"}}) {
    std::string config = text.str();
    ASSERT_NE(config.find(from), config.npos) << from;
    std::ofstream(folder / "config.json") << config.replace(config.find(from), std::strlen(from), to);
    EXPECT_FALSE(complaint().empty()) << to;
  }
}

TEST_F(DeepSeekV4, IsNotSavedWithSettingsThatReadingWouldNotGiveBack) {
  const auto message = [&](auto change) {
    nn::TransformerConfig config = deepseek_v4();
    change(config);
    return message_of([&] { save_pretrained(model_of(config), folder); });
  };
  const std::string none =
      "save_pretrained: no family has the model's heads, windows, norms, scales, caps and experts together";
  EXPECT_EQ(message([](auto& c) { c.compressions[3].index_top = 5; }), none);
  EXPECT_EQ(message([](auto& c) { c.compressions[0].overlapping = true; }), none);
  EXPECT_EQ(message([](auto& c) { c.query_rank = 0, c.compressions.clear(); }), none);
  EXPECT_EQ(message([](auto& c) { c.experts->shared = 2; }), none);
  EXPECT_EQ(message([](auto& c) { c.streams.reset(); }), none);
  EXPECT_EQ(message([](auto& c) { c.attention_sinks = false; }), none);
  EXPECT_EQ(message([](auto& c) { c.compressions = {{}}; }), "nothing was thrown");
  EXPECT_EQ(nn::load_pretrained(folder, pretrained_connection).config.compressed_rotary_base, 500);  // the only base
}

TEST_F(DeepSeekV4, TrainsAllButTheIndexers) {
  Model model = model_of(deepseek_v4(), DType::f64);
  Rng rng(3);
  const Tensor tokens = randint(0, 13, {2, 16}, rng), targets = randint(0, 13, {2, 16}, rng);
  const auto [loss, grads] = value_and_grad([&](const Model& m) { return m.loss(tokens, targets); })(model);
  for_each_param(grads, [](const std::string& name, const Var& grad) {
    const std::vector<double> values = grad.value().to_vector<double>();
    const bool zero = std::ranges::all_of(values, [](double g) { return g == 0; });
    const bool fixed = name.find("indexer") != name.npos || name.ends_with("correction");
    EXPECT_EQ(zero, fixed) << name;
  });
}

}  // namespace
}  // namespace braid::mhc::pretrained_test

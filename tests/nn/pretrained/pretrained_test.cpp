#include <braid/nn/pretrained/pretrained.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>

#include <braid/nn/convert.h>
#include <braid/nn/lora.h>

#include "tests/nn/module_checks.h"
#include "tests/support.h"

namespace braid::nn::pretrained_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TransformerConfig gpt2() {
  return {.vocab = 11,
          .context = 7,
          .channels = 12,
          .layers = 2,
          .heads = 3,
          .norm = NormKind::layer,
          .norm_eps = 1e-3,
          .activation = Activation::gelu_erf,
          .attention_bias = true,
          .tied_head = true};
}

TransformerConfig llama() {
  return {.vocab = 11,
          .context = 7,
          .channels = 12,
          .layers = 2,
          .heads = 6,
          .hidden = 5,
          .kv_heads = 2,
          .norm_eps = 1e-6,
          .positions = PositionKind::rotary,
          .rotary_base = 500,
          .activation = Activation::swiglu,
          .mlp_bias = false};
}

TransformerConfig qwen3() {
  TransformerConfig config = llama();
  config.head_size = 10;
  config.qk_norm = true;
  config.tied_head = true;
  return config;
}

TransformerConfig mistral() {
  TransformerConfig config = llama();
  config.window = 3;
  config.rotary_scaling = {
      .kind = RotaryScaling::Kind::yarn, .factor = 4, .first_context = 16, .fast = 20, .magnitude = 1.25};
  return config;
}

TransformerConfig mixtral() {
  TransformerConfig config = llama();
  config.experts = ExpertsSettings{.experts = 3, .top = 2};
  return config;
}

TransformerConfig qwen3_moe() {
  TransformerConfig config = qwen3();
  config.experts = ExpertsSettings{.experts = 5, .top = 3, .normalized = false};
  return config;
}

TransformerConfig gemma2() {
  TransformerConfig config = llama();
  config.layers = 3;
  config.activation = Activation::geglu;
  config.tied_head = true;
  config.padding = 4;
  config.windows = {3, 0, 3};
  config.norm_offset = 1;
  config.post_norms = true;
  config.embedding_scale = std::sqrt(12.0F);  // as transformers rounds it
  config.attention_scale = 1 / std::sqrt(7.0);
  config.attention_softcap = 0.5;
  config.logits_softcap = 10;
  return config;
}

/// With parameters of order one.
Transformer<> model_of(TransformerConfig config, DType dtype = DType::f32) {
  Rng rng(1);
  config.dtype = dtype;
  Transformer<> model(config, rng);
  for_each_param(model, [&](const std::string&, Var& p) { p = randn(p.shape(), rng, dtype); });
  return model;
}

std::vector<Transformer<>> models(DType dtype = DType::f32) {
  std::vector<Transformer<>> all;
  for (const TransformerConfig& config : {gpt2(), llama(), qwen3(), mistral(), mixtral(), qwen3_moe(), gemma2()})
    all.push_back(model_of(config, dtype));
  return all;
}

/// A connection with a parameter.
struct Scaled {
  using Stream = Var;
  Var scale;
  Var open(const Var& x) const { return x; }
  Var operator()(const Var& x, auto&& layer) const { return x + scale * layer(x); }
  Var close(const Var& x) const { return x; }
  void params(auto&& visit) { visit("scale", scale); }
};

void expect_same(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) EXPECT_TRUE(identical(b.at(name), tensor)) << name;
}

/// Each test has an empty folder of its own.
struct Pretrained : testing::Test {
  Pretrained() { fs::create_directories(folder); }
  ~Pretrained() override { fs::remove_all(folder); }

  std::string read(const char* name) const {
    return (std::stringstream() << std::ifstream(folder / name, std::ios::binary).rdbuf()).str();
  }
  void write(const char* name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
  void replace(const char* name, const std::string& from, const std::string& to) const {
    std::string text = read(name);
    ASSERT_NE(text.find(from), text.npos) << from << " is not in " << text;
    write(name, text.replace(text.find(from), from.size(), to));
  }

  NamedTensors weights() const { return load_safetensors(folder / "model.safetensors").tensors; }
  void set_weights(const NamedTensors& tensors) const { save_safetensors(folder / "model.safetensors", tensors); }
  /// The same values, rounded: `dtype` is BF16 or F16, each element's bits are those that `bits` gives.
  void set_weights(const NamedTensors& tensors, const char* dtype, std::uint16_t (*bits)(float)) const {
    std::string header, data;
    for (const auto& [name, tensor] : tensors) {
      const std::size_t begin = data.size();
      for (const float v : tensor.to_vector<float>()) {
        const std::uint16_t half = bits(v);
        data.append(reinterpret_cast<const char*>(&half), sizeof(half));
      }
      std::string sizes = to_string(tensor.shape());
      header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", header.empty() ? "" : ",",
                            name, dtype, sizes, begin, data.size());
    }
    header = "{" + header + "}";
    const std::uint64_t length = header.size();
    write("model.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + header + data);
  }

  std::string complaint() const {
    const std::string prefix = "load_pretrained: " + folder.string();
    const std::string message = message_of([&] { load_pretrained(folder); });
    EXPECT_THAT(message, testing::StartsWith(prefix));
    EXPECT_EQ(message.find('\n'), message.npos);
    return message.substr(std::min(message.size(), prefix.size()));
  }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_pretrained_" + test);
};

TEST_F(Pretrained, ReadsEveryBitThatItWrote) {
  const Tensor tokens = Tensor::of<std::int32_t>({2, 3}, {1, 10, 4, 0, 0, 7});
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Transformer<>& model : models(dtype)) {
      save_pretrained(model, folder);
      const Transformer<> loaded = load_pretrained(folder, {.dtype = dtype});
      expect_same(to_tensors(loaded), to_tensors(model));
      EXPECT_TRUE(identical(loaded.logits(tokens).value(), model.logits(tokens).value()));
    }
}

TEST_F(Pretrained, KeepsTheSettings) {
  save_pretrained(model_of(qwen3()), folder);
  const TransformerConfig config = load_pretrained(folder).config;
  EXPECT_EQ(config.context, 7);
  EXPECT_EQ(config.norm_eps, 1e-6);
  EXPECT_EQ(config.rotary_base, 500);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_size, 10);
  EXPECT_EQ(config.hidden, 5);
}

TEST_F(Pretrained, KnowsTheDefaultsOfAFamily) {
  save_pretrained(model_of(llama()), folder);
  for (const char* setting : {R"("num_key_value_heads": 2,)", R"("head_dim": 2,)", R"("rms_norm_eps": 1e-06,)"})
    replace("config.json", setting, "");
  EXPECT_THAT(complaint(), HasSubstr("k_proj.weight must have shape [12, 12] but has [4, 12]"));
}

TEST_F(Pretrained, HasTheDefaultsOfTransformers) {
  struct Defaults {
    const char* family;
    std::int64_t vocab, context, channels, hidden, head_size, window;
    int layers, heads, kv_heads;
    double eps;
    Activation activation;
    bool learned, layer_norm, biases, tied, qk_norm;
    double base = 10000;
    int experts = 0, top = 0;
  };
  using enum Activation;
  for (const Defaults& d : std::vector<Defaults>{
           {"gpt2", 50257, 1024, 768, 3072, 64, 0, 12, 12, 12, 1e-5, gelu, true, true, true, true, false},
           {"llama", 32000, 2048, 4096, 11008, 128, 0, 32, 32, 32, 1e-6, swiglu, false, false, false, false, false},
           {"qwen3", 151936, 32768, 4096, 22016, 128, 0, 32, 32, 32, 1e-6, swiglu, false, false, false, false, true},
           {"mistral", 32000, 131072, 4096, 14336, 128, 4096, 32, 32, 8, 1e-6, swiglu, false, false, false, false,
            false},
           {"mixtral", 32000,  131072, 4096,  14336, 128,   0,     32,  32, 8,
            1e-5,      swiglu, false,  false, false, false, false, 1e6, 8,  2},
           {"qwen3_moe", 151936, 32768, 2048,  768,   64,    0,    24,    32,  4,
            1e-6,        swiglu, false, false, false, false, true, 10000, 128, 8},
           {"gemma2", 256000, 8192, 2304, 9216, 256, 0, 26, 8, 4, 1e-6, geglu, false, false, false, true, false}}) {
    SCOPED_TRACE(d.family);
    const TransformerConfig c =
        parse_pretrained_config("here", fmt::format(R"({{"model_type": "{}"}})", d.family)).config;
    EXPECT_EQ(c.vocab, d.vocab);
    EXPECT_EQ(c.context, d.context);
    EXPECT_EQ(c.channels, d.channels);
    EXPECT_EQ(c.hidden.value_or(c.mlp_ratio * c.channels), d.hidden);
    EXPECT_EQ(c.head_size.value_or(c.channels / c.heads), d.head_size);
    EXPECT_EQ(c.window, d.window);
    EXPECT_EQ(c.layers, d.layers);
    EXPECT_EQ(c.heads, d.heads);
    EXPECT_EQ(c.kv_heads.value_or(c.heads), d.kv_heads);
    EXPECT_EQ(c.norm_eps, d.eps);
    EXPECT_EQ(c.activation, d.activation);
    EXPECT_EQ(c.positions == PositionKind::learned, d.learned);
    EXPECT_EQ(c.rotary_base, d.base);
    EXPECT_EQ(c.experts ? c.experts->experts : 0, d.experts);
    EXPECT_EQ(c.experts ? c.experts->top : 0, d.top);
    EXPECT_EQ(c.experts && c.experts->normalized, d.family == std::string("mixtral"));
    const bool gemma = d.family == std::string("gemma2");
    EXPECT_EQ(c.padding, gemma ? std::optional<std::int64_t>(0) : std::nullopt);
    EXPECT_EQ(c.norm_offset, gemma ? 1 : 0);
    EXPECT_EQ(c.post_norms, gemma);
    EXPECT_EQ(c.embedding_scale, gemma ? 48 : 1);
    EXPECT_EQ(c.attention_scale, gemma ? 1.0 / 16 : 0);
    EXPECT_EQ(c.attention_softcap, gemma ? 50 : 0);
    EXPECT_EQ(c.logits_softcap, gemma ? 30 : 0);
    EXPECT_EQ(c.windows, gemma ? (std::vector<std::int64_t>{4096, 0}) : std::vector<std::int64_t>());
    EXPECT_EQ(c.rotary_scaling.kind, RotaryScaling::Kind::none);
    EXPECT_EQ(c.norm == NormKind::layer, d.layer_norm);
    EXPECT_EQ(c.attention_bias, d.biases);
    EXPECT_EQ(c.mlp_bias, d.biases);
    EXPECT_EQ(c.tied_head, d.tied);
    EXPECT_EQ(c.qk_norm, d.qk_norm);
  }
}

TEST_F(Pretrained, DefaultsToTheHeadsOfTheFamilyAndTakesNullForNone) {
  for (const auto& [family, kv_heads] :
       {std::pair("llama", 64), {"qwen3", 32}, {"mistral", 8}, {"mixtral", 8}, {"qwen3_moe", 4}}) {
    const std::string absent = fmt::format(R"({{"model_type": "{}", "num_attention_heads": 64}})", family);
    EXPECT_EQ(parse_pretrained_config("here", absent).config.kv_heads, kv_heads) << family;
    const TransformerConfig c =
        parse_pretrained_config("here", fmt::format(R"({{"model_type": "{}", "num_attention_heads": 16,
            "num_key_value_heads": null, "sliding_window": null, "rope_scaling": null}})",
                                                    family))
            .config;
    EXPECT_EQ(c.kv_heads.value_or(c.heads), 16) << family;
    EXPECT_EQ(c.window, 0) << family;
  }
}

TEST_F(Pretrained, RefusesToSaveWhatReadingWouldNotGiveBack) {
  const auto message = [&](TransformerConfig config, auto change) {
    change(config);
    return message_of([&] { save_pretrained(model_of(config), folder); });
  };
  const std::string none =
      "save_pretrained: no family has the model's heads, windows, norms, scales, caps and experts together";
  EXPECT_EQ(message(llama(), [](auto& c) { c.logits_softcap = 5; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.attention_softcap = 5; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.attention_scale = 0.3; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.embedding_scale = 3; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.norm_offset = 1; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.value_residual = true; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.post_norms = true; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.windows = {3, 0}; }), none);
  EXPECT_EQ(message(qwen3(), [](auto& c) { c.window = 3; }), none);
  EXPECT_EQ(message(mixtral(), [](auto& c) { c.experts->routing = Routing::sigmoid; }), none);
  EXPECT_EQ(message(mixtral(), [](auto& c) { c.experts->shared = 1; }), none);
  EXPECT_EQ(message(mixtral(), [](auto& c) { c.experts->normalized = false; }), none);
  EXPECT_EQ(message(gemma2(), [](auto& c) { c.post_norms = false; }), none);
  EXPECT_EQ(message(gpt2(), [](auto& c) { c.kv_heads = 1; }), none);
  EXPECT_EQ(message(llama(), [](auto& c) { c.windows = {4, 4}; }), "nothing was thrown");  // a Mistral
  EXPECT_EQ(message(mixtral(), [](auto& c) { c.window = 4; }), "nothing was thrown");
  EXPECT_EQ(message(mixtral(), [](auto& c) { c.experts->mlp.bias = true; }), "nothing was thrown");
  EXPECT_EQ(message(llama(), [](auto& c) { c.hidden.reset(), c.mlp_ratio = 2; }), "nothing was thrown");
  EXPECT_EQ(message(llama(), [](auto& c) { c.compressed_rotary_scaling.factor = 2; }), "nothing was thrown");
  EXPECT_EQ(message(gpt2(), [](auto& c) { c.rotary_base = 7; }), "nothing was thrown");  // has no rotary positions
}

TEST_F(Pretrained, ReadsGemma2AsItWasReleasedAndRefusesWhatDoesNotFit) {
  const auto parse = [](const std::string& settings) {
    return parse_pretrained_config("here", R"({"model_type": "gemma2", "num_hidden_layers": 3, )" + settings + "}")
        .config;
  };
  const TransformerConfig c = parse(R"("hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
      "sliding_window": 7, "layer_types": ["full_attention", "sliding_attention", "full_attention"])");
  EXPECT_EQ(c.activation, Activation::geglu);
  EXPECT_EQ(c.windows, (std::vector<std::int64_t>{0, 7, 0}));
  EXPECT_THAT(message_of([&] { parse(R"("hidden_act": "silu")"); }),
              HasSubstr("'hidden_act' must be 'gelu_pytorch_tanh'"));
  EXPECT_THAT(message_of([&] { parse(R"("layer_types": ["full_attention"])"); }),
              HasSubstr("'layer_types' must be a list with a kind for each of 3 layers"));
  EXPECT_THAT(message_of([&] { parse(R"("layer_types": [1, 2, 3])"); }),
              HasSubstr("'layer_types' must be one of full_attention, sliding_attention for each layer, not 1,"));
  EXPECT_EQ(
      message_of([] { parse_pretrained_config("here", R"({"model_type": "mixtral", "num_experts_per_tok": 9})"); }),
      "here: Experts: top must be in [1, 8], the number of experts, but is 9");
  // Nothing is allocated for layers that no file holds.
  EXPECT_EQ(parse_pretrained_config("here", R"({"model_type": "gemma2", "num_hidden_layers": 2147483647})")
                .config.windows.size(),
            2U);
}

TEST_F(Pretrained, SaysTheDtypeOfTheFiles) {
  for (const auto& [dtype, name] :
       {std::pair(DType::f32, "float32"), {DType::f64, "float64"}, {DType::bf16, "bfloat16"}})
    for (const Transformer<>& model : models(DType::f32)) {
      save_pretrained(to_dtype(model, dtype), folder);
      EXPECT_THAT(read("config.json"), HasSubstr(fmt::format(R"("torch_dtype": "{}")", name)));
    }
}

TEST_F(Pretrained, ConvertsToTheDtype) {
  const Transformer<> model = model_of(gpt2());
  save_pretrained(model, folder);
  expect_same(to_tensors(load_pretrained(folder, {.dtype = DType::f64})), to_tensors(to_dtype(model, DType::f64)));
  EXPECT_EQ(message_of([&] { load_pretrained(folder, {.dtype = DType::i32}); }),
            "load_pretrained: expected a floating-point tensor but has dtype i32");
}

TEST_F(Pretrained, StoresGpt2AsConv1d) {
  const Transformer<> model = model_of(gpt2());
  save_pretrained(model, folder);
  const NamedTensors tensors = weights();
  EXPECT_FALSE(tensors.contains("lm_head.weight"));
  const Tensor& fused = tensors.at("transformer.h.1.attn.c_attn.weight");
  EXPECT_EQ(fused.shape(), Shape({12, 36}));
  const MultiHeadAttention& attention = model.blocks[1].attention.body;
  EXPECT_TRUE(identical(fused.slice(1, 0, 12), attention.q.weight.value().transpose()));
  EXPECT_TRUE(identical(fused.slice(1, 12, 24), attention.k.weight.value().transpose()));
  EXPECT_TRUE(identical(fused.slice(1, 24, 36), attention.v.weight.value().transpose()));
  EXPECT_TRUE(identical(tensors.at("transformer.h.1.attn.c_attn.bias").slice(0, 24, 36), attention.v.bias.value()));
  expect_same(tensors, pretrained_tensors(model));
}

TEST_F(Pretrained, ReadsShards) {
  for (const Transformer<>& model : models()) {
    save_pretrained(model, folder, {.max_shard_bytes = 2400});
    EXPECT_FALSE(fs::exists(folder / "model.safetensors"));
    EXPECT_TRUE(fs::exists(folder / "model.safetensors.index.json"));
    expect_same(to_tensors(load_pretrained(folder)), to_tensors(model));
  }
  save_pretrained(model_of(llama()), folder, {.max_shard_bytes = 5808});  // all of its bytes in one file
  EXPECT_FALSE(fs::exists(folder / "model.safetensors.index.json"));
  expect_same(to_tensors(load_pretrained(folder)), to_tensors(model_of(llama())));
}

TEST_F(Pretrained, ReadsHalves) {
  const auto upper = [](float v) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16); };
  const auto signs = [](float v) -> std::uint16_t { return v < 0 ? 0xbc00 : 0x3c00; };  // -1 and 1
  for (const Transformer<>& model : models()) {
    save_pretrained(model, folder);
    const NamedTensors tensors = weights();
    set_weights(tensors, "BF16", upper);
    Transformer<> expected = model;
    for_each_param(expected, [&](const std::string&, Var& p) {
      Tensor rounded(p.shape(), DType::f32);
      std::ranges::transform(p.value().to_vector<float>(), rounded.mutable_data<float>(),
                             [&](float v) { return std::bit_cast<float>(static_cast<std::uint32_t>(upper(v)) << 16); });
      p = rounded;
    });
    expect_same(to_tensors(load_pretrained(folder)), to_tensors(expected));
    set_weights(tensors, "F16", signs);
    for_each_param(load_pretrained(folder, {.dtype = DType::f64}), [&](const std::string& name, const Var& p) {
      for (const double v : p.value().to_vector<double>()) EXPECT_EQ(std::abs(v), 1) << name;
    });
  }
}

TEST_F(Pretrained, ReadsFilesOfTheBareModel) {
  for (const Transformer<>& model : {model_of(gpt2()), model_of(qwen3())}) {
    save_pretrained(model, folder);
    NamedTensors bare{{"layers.0.self_attn.rotary_emb.inv_freq", ones({3})}};  // constants, which older files have
    if (!model.config.qk_norm) bare = {{"h.1.attn.bias", ones({1, 1, 7, 7})}, {"h.1.attn.masked_bias", scalar(-1e4)}};
    for (const auto& [name, tensor] : weights()) bare.emplace(name.substr(name.find('.') + 1), tensor);
    set_weights(bare);
    expect_same(to_tensors(load_pretrained(folder)), to_tensors(model));
  }
}

TEST_F(Pretrained, TakesATiedHeadThatIsTheEmbedding) {
  const Transformer<> model = model_of(qwen3());
  save_pretrained(model, folder);
  NamedTensors tensors = weights();
  tensors["lm_head.weight"] = tensors.at("model.embed_tokens.weight");
  set_weights(tensors);
  expect_same(to_tensors(load_pretrained(folder)), to_tensors(model));
  tensors["lm_head.weight"] = ones({11, 12});
  set_weights(tensors);
  EXPECT_EQ(complaint(), ": lm_head.weight must be the embedding, to which tie_word_embeddings ties it, but differs");
}

TEST_F(Pretrained, GivesSublayersTheConnectionsThatAreMadeForThem) {
  const Transformer<> model = model_of(llama());
  save_pretrained(model, folder);
  const auto make = [](const TransformerConfig& config, int i) { return Scaled{full({config.channels}, i)}; };
  const auto loaded = load_pretrained(folder, make);
  EXPECT_EQ(loaded.blocks[1].mlp.connection.scale.value().at({11}), 3);
  NamedTensors own = to_tensors(loaded);
  std::erase_if(own, [](const auto& named) { return named.first.find(".connection.") != std::string::npos; });
  expect_same(own, to_tensors(model));
  EXPECT_EQ(message_of([&] { save_pretrained(loaded, folder / "x"); }),
            "save_pretrained: the connections must have no parameters, as in the family; nn::save_module saves a model "
            "with any");
  Rng rng;
  Transformer<> with_lora = model;
  add_lora(with_lora, rng);
  EXPECT_EQ(message_of([&] { save_pretrained(with_lora, folder / "x"); }),
            "pretrained_tensors: the model's family has no blocks.0.attention.k.lora.a; call nn::merge_lora first");
  EXPECT_FALSE(fs::exists(folder / "x"));
}

TEST_F(Pretrained, ListsAllThatDoesNotFit) {
  save_pretrained(model_of(llama()), folder);
  NamedTensors tensors = weights();
  tensors.erase("model.norm.weight");
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  tensors["lm_head.weight"] = ones({12, 11});
  tensors["model.layers.0.mlp.gate_proj.weight"] = ones({5, 12}, DType::i32);
  tensors["model.layers.2.mlp.up_proj.weight"] = ones({1});
  tensors["norm"] = ones({1});
  set_weights(tensors);
  EXPECT_EQ(
      complaint(),
      ": lm_head.weight must have shape [11, 12] but has [12, 11], model.layers.0.mlp.gate_proj.weight must be F32, "
      "F16, BF16 or F64 but is I32, model.layers.2.mlp.up_proj.weight is unexpected, norm is unexpected, "
      "model.layers.1.mlp.up_proj.weight is missing, model.norm.weight is missing");
}

TEST_F(Pretrained, ListsThirtyOfThemAtMost) {
  save_pretrained(model_of(llama()), folder);
  NamedTensors tensors = weights();
  for (int i = 0; i < 1000; ++i) tensors[fmt::format("t{:04}", i)] = ones({1});
  set_weights(tensors);
  EXPECT_THAT(complaint(), testing::EndsWith(", t0028 is unexpected, t0029 is unexpected, and 970 more"));
  save_pretrained(model_of(llama()), folder);
  replace("config.json", R"("num_hidden_layers": 2)", R"("num_hidden_layers": 3)");  // as many as 21 tensors may be
  EXPECT_THAT(complaint(), HasSubstr("model.layers.2.mlp.up_proj.weight is missing"));
}

TEST_F(Pretrained, RefusesByNameWhatItDoesNotDo) {
  struct Wrong {
    TransformerConfig config;
    std::string from, to, complaint;
  };
  const std::string only = ", the only supported value, but is ";
  const std::vector<Wrong> all{
      {llama(), R"("rope_type": "default")", R"("rope_type": "linear")",
       "rope_parameters: 'rope_type' must be one of default, llama3, yarn but is 'linear'"},
      {llama(), R"("rope_parameters")", R"("rope_scaling": {"type": "longrope", "factor": 2.0}, "rope_parameters")",
       "rope_scaling: 'type' must be one of default, llama3, yarn but is 'longrope'"},
      {llama(), R"("rope_type": "default")", R"("rope_type": "yarn", "factor": 2.0)",
       "rope_parameters: 'original_max_position_embeddings' must be a positive number but is null"},
      {llama(), R"("rope_type": "default")",
       R"("rope_type": "llama3", "factor": 0.5, "original_max_position_embeddings": 8)",
       "scaled_turns: factor must be at least 1, first_context positive and 0 < slow < fast but they are 0.5, 8, 1, 4"},
      {mistral(), R"("sliding_window": 3)", R"("sliding_window": 0)",
       "'sliding_window' must be an integer from 1 to 2147483647 but is 0"},
      {llama(), R"("rope_type": "default")", R"("full_attention": {})",
       "rope_parameters: 'full_attention' must be a number or text but is an object"},
      {llama(), R"("rope_type": "default")", R"("partial_rotary_factor": 0.5)",
       "rope_parameters: 'partial_rotary_factor' must be 1" + only + "0.5"},
      {llama(), R"("attention_bias")", R"("partial_rotary_factor": 0.5, "attention_bias")",
       "'partial_rotary_factor' must be 1" + only + "0.5"},
      {llama(), R"("attention_bias": false)", R"("attention_bias": true)",
       "'attention_bias' must be false" + only + "true"},
      {llama(), R"("attention_bias")", R"("mlp_bias": true, "attention_bias")",
       "'mlp_bias' must be false" + only + "true"},
      {llama(), R"("silu")", R"("gelu")", "'hidden_act' must be 'silu'" + only + "'gelu'"},
      {llama(), R"("attention_bias")", R"("quantization_config": {"bits": 4}, "attention_bias")",
       "'quantization_config' must be absent, since quantized models are not supported, but is an object"},
      {qwen3(), R"("attention_bias")", R"("use_sliding_window": true, "attention_bias")",
       "'use_sliding_window' must be false" + only + "true"},
      {qwen3(), R"("attention_bias")", R"("layer_types": ["full_attention", "sliding_attention"], "attention_bias")",
       "'layer_types' must be one of full_attention for each layer, not 'sliding_attention', but is a list"},
      {qwen3(), R"("attention_bias")", R"("layer_types": ["full_attention"], "attention_bias")",
       "'layer_types' must be a list with a kind for each of 2 layers but is a list"},
      {qwen3_moe(), R"("attention_bias")", R"("use_sliding_window": true, "attention_bias")",
       "'use_sliding_window' must be false" + only + "true"},
      {qwen3_moe(), R"("attention_bias")", R"("decoder_sparse_step": 2, "attention_bias")",
       "'decoder_sparse_step' must be 1" + only + "2"},
      {qwen3_moe(), R"("attention_bias")", R"("mlp_only_layers": [0], "attention_bias")",
       "'mlp_only_layers' must be a list" + only + "a list"},
      {gemma2(), R"("attention_bias")", R"("use_bidirectional_attention": true, "attention_bias")",
       "'use_bidirectional_attention' must be false" + only + "true"},
      {llama(), R"("pad_token_id": null)", R"("pad_token_id": 18446744073709551615)",
       "'pad_token_id' must be an integer from -11 to 10 but is 18446744073709551615"},
      {llama(), R"("pad_token_id": null)", R"("pad_token_id": -12)",
       "'pad_token_id' must be an integer from -11 to 10 but is -12"},
      {llama(), R"("pad_token_id": null)", R"("pad_token_id": 11)",
       "'pad_token_id' must be an integer from -11 to 10 but is 11"},
      {gpt2(), R"("attn_pdrop")", R"("scale_attn_by_inverse_layer_idx": true, "attn_pdrop")",
       "'scale_attn_by_inverse_layer_idx' must be false" + only + "true"},
      {gpt2(), R"("attn_pdrop")", R"("scale_attn_weights": false, "attn_pdrop")",
       "'scale_attn_weights' must be true" + only + "false"},
      {gpt2(), R"("attn_pdrop")", R"("add_cross_attention": true, "attn_pdrop")",
       "'add_cross_attention' must be false" + only + "true"},
      {gpt2(), R"("gelu")", R"("tanh")",
       "'activation_function' must be one of gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, relu but is 'tanh'"},
      {gpt2(), R"("gpt2")", R"("bert")",
       "'model_type' must be one of gpt2, llama, qwen3, mistral, mixtral, qwen3_moe, gemma2, deepseek_v4 but is "
       "'bert'"},
      {gpt2(), R"("n_layer": 2)", R"("n_layer": "2")", "'n_layer' must be an integer from 1 to 2147483647 but is '2'"},
      {gpt2(), R"("n_layer": 2)", R"("n_layer": 0)", "'n_layer' must be an integer from 1 to 2147483647 but is 0"},
      {gpt2(), R"("n_layer": 2)", R"("n_layer": -1)", "'n_layer' must be an integer from 1 to 2147483647 but is -1"},
      {gpt2(), R"("n_head": 3)", R"("n_head": 5)",
       "Transformer: heads must divide channels but channels is 12 and heads is 5"},
      {llama(), R"("head_dim": 2)", R"("head_dim": 3)",
       "Transformer: rotary positions need an even part of a head but head_size is 3 and rotary_share 1"},
      {llama(), R"("rms_norm_eps": 1e-06)", R"("rms_norm_eps": 0)",
       "'rms_norm_eps' must be a positive number but is 0"},
      {llama(), R"("tie_word_embeddings": false)", R"("tie_word_embeddings": 1)",
       "'tie_word_embeddings' must be true or false but is 1"},
  };
  for (const auto& [config, from, to, expected] : all) {
    save_pretrained(model_of(config), folder);
    replace("config.json", from, to);
    EXPECT_EQ(complaint(), "/config.json: " + expected);
  }
}

TEST(PretrainedConfig, IsWrittenForEveryLayerAndAsTransformersReadsIt) {
  const auto written = [](const TransformerConfig& config) { return format_pretrained_config(config, DType::f32); };
  const auto read = [](const std::string& text) { return parse_pretrained_config("here", text).config; };
  TransformerConfig gemma = gemma2(), moe = qwen3_moe();
  gemma.layers = 5;
  gemma.windows = {3, 0};
  EXPECT_EQ(read(written(gemma)).windows, (std::vector<std::int64_t>{3, 0, 3, 0, 3}));
  EXPECT_THAT(written(gemma), HasSubstr(R"("query_pre_attn_scalar": 7,)"));
  EXPECT_THAT(written(gemma), HasSubstr(R"("Gemma2ForCausalLM")"));
  moe.experts->normalized = true;
  EXPECT_EQ(read(written(moe)).experts, moe.experts);
  TransformerConfig v4 = read(R"({"model_type": "deepseek_v4", "num_hidden_layers": 5})");
  v4.compressions = {v4.compressions[0], v4.compressions[3]};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(read(written(v4)).compressions[i], v4.compressions[i % 2]) << i;
  for (const char* others : {R"("intermediate_size")", R"("num_local_experts")"})
    EXPECT_THAT(written(v4), testing::Not(HasSubstr(others)));
}

TEST(PretrainedConfig, KnowsTheActivationsOfGPT2) {
  for (const auto& [name, activation] : {std::pair("gelu_new", Activation::gelu),
                                         {"gelu_pytorch_tanh", Activation::gelu},
                                         {"gelu_fast", Activation::gelu},
                                         {"gelu", Activation::gelu_erf},
                                         {"relu", Activation::relu}}) {
    const std::string text = fmt::format(R"({{"model_type": "gpt2", "activation_function": "{}"}})", name);
    EXPECT_EQ(parse_pretrained_config("here", text).config.activation, activation) << name;
  }
}

TEST_F(Pretrained, SavesWeightsAsTransformersMarksThem) {
  save_pretrained(model_of(llama()), folder);
  EXPECT_EQ(load_safetensors(folder / "model.safetensors").metadata.at("format"), "pt");
}

TEST(PretrainedConfig, HasTheMagnitudeOfYarnThatTheFileAsksFor) {
  const auto magnitude = [](const std::string& more) {
    const std::string yarn = R"("rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 64)";
    const std::string text = R"({"model_type": "llama", "rope_scaling": {)" + yarn + more + "}}";
    const RotaryScaling scaling = parse_pretrained_config("here", text).config.rotary_scaling;
    EXPECT_EQ(std::pair(scaling.slow, scaling.fast), std::pair(1.0, 32.0));  // unless the file has others
    return scaling.magnitude;
  };
  const double log = std::log(4.0);
  EXPECT_DOUBLE_EQ(magnitude(R"(, "mscale": 1, "mscale_all_dim": 0.5)"), (0.1 * log + 1) / (0.05 * log + 1));
  EXPECT_EQ(magnitude(R"(, "mscale": 0.5)"), magnitude(""));
  EXPECT_EQ(magnitude(R"(, "mscale_all_dim": 0.5)"), magnitude(""));
  EXPECT_EQ(magnitude(R"(, "mscale": 1, "mscale_all_dim": 0.5, "attention_factor": 1.5)"), 1.5);
}

TEST_F(Pretrained, RefusesSettingsThatTheFilesCannotFill) {
  for (const auto& [from, to, expected] : std::vector<std::array<std::string, 3>>{
           {R"("num_hidden_layers": 2)", R"("num_hidden_layers": 2000000000)",
            ": config.json specifies 2000000000 layers but the files' 21 tensors have room for 3"},
           {R"("num_hidden_layers": 2)", R"("num_hidden_layers": 4)",  // 6 tensors each
            ": config.json specifies 4 layers but the files' 21 tensors have room for 3"},
           {R"("hidden_size": 12)", R"("hidden_size": 1200000000)",
            ": config.json specifies 1200000000 channels but the files' 5808 bytes have room for 5808"},
           {R"("intermediate_size": 5)", R"("intermediate_size": 6000)",
            ": config.json specifies 6000 hidden channels but the files' 5808 bytes have room for 5808"},
           {R"("head_dim": 2)", R"("head_dim": 20000)",
            ": config.json specifies 20000 channels per head but the files' 5808 bytes have room for 5808"}}) {
    save_pretrained(model_of(llama()), folder);
    replace("config.json", from, to);
    EXPECT_EQ(complaint(), expected);
  }
  save_pretrained(model_of(llama()), folder);
  replace("config.json", R"("hidden_size": 12)", R"("hidden_size": 300)");  // but no weights of connections
  EXPECT_THAT(complaint(), HasSubstr("model.norm.weight must have shape [300] but has [12]"));
  for (const auto& [channels, vocab, excess] :
       {std::tuple(16, 11, "1536 weights of each connection"), {15, 1453, "1453 token ids"}}) {  // 4 4 (4 + 2) channels
    write("config.json", fmt::format(R"({{"model_type": "deepseek_v4", "num_hidden_layers": 1, "hidden_size": {},
        "vocab_size": {}, "num_attention_heads": 2, "head_dim": 16, "o_groups": 2, "n_routed_experts": 1,
        "num_experts_per_tok": 1}})",
                                     channels, vocab));
    EXPECT_EQ(complaint(),
              fmt::format(": config.json specifies {} but the files' 5808 bytes have room for 1452", excess));
  }
}

TEST_F(Pretrained, RefusesAFolderThatIsNoneOrDamaged) {
  EXPECT_EQ(complaint(), "/config.json: cannot be opened: No such file or directory");
  save_pretrained(model_of(llama()), folder);
  fs::remove(folder / "model.safetensors");
  EXPECT_EQ(complaint(), ": must have model.safetensors or model.safetensors.index.json");
  write("pytorch_model.bin", "");
  EXPECT_EQ(complaint(),
            ": must have model.safetensors or model.safetensors.index.json; convert pytorch_model.bin in Python");
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "must be JSON but is not"},
           {"{", "must be JSON but is not"},
           {"{\"model_type\": 1e999}", "must be JSON but is not"},
           {"[]", "must be a JSON object but is a list"},
           {"{\"model_type\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}",
            "must nest at most 64 deep but does so deeper at byte 78"}}) {
    write("config.json", text);
    EXPECT_EQ(complaint(), "/config.json: " + expected);
  }
}

TEST_F(Pretrained, RefusesDamagedShards) {
  const SavePretrained small{.max_shard_bytes = 2400};
  save_pretrained(model_of(llama()), folder, small);
  EXPECT_THAT(read("model.safetensors.index.json"), HasSubstr(R"("total_size": 5808)"));
  fs::resize_file(folder / "model-00002-of-00003.safetensors", 700);
  EXPECT_THAT(complaint(), testing::StartsWith("/model-00002-of-00003.safetensors: the "));
  fs::remove(folder / "model-00002-of-00003.safetensors");
  EXPECT_EQ(complaint(), "/model-00002-of-00003.safetensors: cannot be opened: No such file or directory");
  save_pretrained(model_of(llama()), folder, small);
  fs::copy_file(folder / "model-00001-of-00003.safetensors", folder / "model-00002-of-00003.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(complaint(), HasSubstr("model.embed_tokens.weight occurs twice"));
  EXPECT_THAT(complaint(), HasSubstr("is missing from model-00002-of-00003.safetensors"));
  for (const char* escape :
       {"../model-00003-of-00003.safetensors", "/etc/passwd", "model-00003-of-00003", "", "a\\\\b.safetensors"}) {
    save_pretrained(model_of(llama()), folder, small);
    replace("model.safetensors.index.json", "model-00003-of-00003.safetensors", escape);
    EXPECT_THAT(complaint(), HasSubstr("must be in a .safetensors file beside it but is in '"));
  }
  write("model.safetensors.index.json", R"({"weight_map": 3})");
  EXPECT_EQ(complaint(), "/model.safetensors.index.json: 'weight_map' must be an object but is 3");
}

TEST_F(Pretrained, SavesNoModelThatIsOfNoFamily) {
  Rng rng(1);
  EXPECT_THAT(
      message_of([&] { save_pretrained(Transformer<>({.mlp_bias = false}, rng), folder / "x"); }),
      HasSubstr(
          "but has RMS norm, learned positions, attention without biases, an MLP without biases and without gate"));
  EXPECT_FALSE(fs::exists(folder / "x"));
}

}  // namespace
}  // namespace braid::nn::pretrained_test

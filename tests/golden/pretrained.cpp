#include <tests/golden/pretrained.h>

#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/ops/concat.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/mhc/connection.h>
#include <braid/nn/pretrained/pretrained.h>

namespace braid::golden {
namespace {

constexpr const char* kExpected = "expected.safetensors";

using Model = nn::Transformer<mhc::Connection>;

/// The names of DeepSeek-V4's files and those that its modules have in transformers, applied in this order.
constexpr std::pair<const char*, const char*> kDeepSeekV4[] = {
    {R"(\.attn\.)", ".self_attn."},
    {R"(\.ffn\.)", ".mlp."},
    {R"(\.indexer\.compressor\.)", ".compressor.indexer."},
    {R"(^head\.)", "lm_head."},
    {R"(\.attn_norm\.)", ".input_layernorm."},
    {R"(\.ffn_norm\.)", ".post_attention_layernorm."},
    {R"(\.hc_(attn|ffn)_)", ".$1_hc."},
    {R"(\.attn_sink)", ".sinks"},
    {R"(\.indexer\.weights_proj\.)", ".compressor.indexer.scorer.weights_proj."},
    {R"(\.indexer\.wq_b\.)", ".compressor.indexer.q_b_proj."},
    {R"((self_attn|compressor|indexer)\.norm\.)", "$1.kv_norm."},
    {R"(\.ape$)", ".position_bias"},
    {R"(\.wq_([ab])\.)", ".q_$1_proj."},
    {R"(\.wkv\.)", ".kv_proj."},
    {R"(\.wgate\.)", ".gate_proj."},
    {R"(\.wo_([ab])\.)", ".o_$1_proj."},
    {R"(\.q_norm\.)", ".q_a_norm."},
    {R"(\.shared_experts\.w1)", ".shared_experts.gate_proj"},
    {R"(\.shared_experts\.w2)", ".shared_experts.down_proj"},
    {R"(\.shared_experts\.w3)", ".shared_experts.up_proj"},
};

/// The name in transformers' memory, but of experts.
std::string in_memory(std::string name, bool deepseek_v4) {
  if (!deepseek_v4) return std::regex_replace(name, std::regex("block_sparse_moe"), "mlp");
  for (const auto& [theirs, ours] : kDeepSeekV4) name = std::regex_replace(name, std::regex(theirs), ours);
  return name;
}

/// Tensors of files as transformers holds them in memory, where the experts of a layer are two tensors:
/// gate_up_proj [E, 2 hidden, C] and down_proj [E, C, hidden].
nn::NamedTensors in_memory(const nn::NamedTensors& in_files, bool deepseek_v4) {
  static const std::regex expert(
      R"((.*\.)(?:mlp|ffn|block_sparse_moe)\.experts\.(\d+)\.(gate_proj|up_proj|down_proj|w1|w2|w3)\.weight)");
  std::map<std::string, std::map<int, std::map<std::string, Var>>> layers;  // [layer][expert][matrix]
  nn::NamedTensors tensors;
  for (const auto& [name, tensor] : in_files) {
    std::smatch match;
    if (std::regex_match(name, match, expert))
      layers[match[1]][std::stoi(match[2])][match[3]] = tensor;
    else if (tensor.dtype() != DType::i32 && !name.ends_with("gate.bias"))  // which have no gradient
      tensors.emplace(in_memory(name, deepseek_v4), tensor);
  }
  for (auto& [layer, experts] : layers) {
    std::vector<Var> gate_up, down;
    for (auto& [number, matrices] : experts) {
      const bool numbered = matrices.contains("w1");
      gate_up.push_back(concat({matrices[numbered ? "w1" : "gate_proj"], matrices[numbered ? "w3" : "up_proj"]}, 0));
      down.push_back(matrices[numbered ? "w2" : "down_proj"]);
    }
    tensors.emplace(layer + "mlp.experts.gate_up_proj", stack(gate_up, 0).value());
    tensors.emplace(layer + "mlp.experts.down_proj", stack(down, 0).value());
  }
  return tensors;
}

nn::NamedTensors results(const Model& model, const Tensor& tokens, const Tensor& targets) {
  const auto [loss, grads] = value_and_grad([&](const Model& m) { return m.loss(tokens, targets); })(model);
  nn::NamedTensors found{{"out.logits", model.logits(tokens).value()}, {"out.loss", full({1}, loss, DType::f64)}};
  const bool deepseek_v4 = nn::family_of(model.config) == nn::PretrainedFamily::deepseek_v4;
  for (auto& [name, grad] : in_memory(nn::pretrained_tensors(grads), deepseek_v4)) found.emplace("grad." + name, grad);
  return found;
}

}  // namespace

bool is_pretrained(const std::filesystem::path& folder) {
  return exists(folder / "config.json") && exists(folder / kExpected);
}

Verdict check_pretrained(const std::filesystem::path& folder) {
  RecordedCase expected = nn::load_case(folder / kExpected);
  expected.name = folder.filename().string();
  const auto check = [&](const RecordedCase& golden, const nn::VerifyOptions& options) {
    const Model model = nn::load_pretrained(folder, mhc::pretrained_connection, {.dtype = options.dtype});
    return nn::compare(golden, results(model, golden.tensor("in.tokens"), golden.tensor("in.targets")),
                       *options.tolerance);
  };
  return check_case(expected, {{expected.name, {{"load_pretrained", check}}}});
}

}  // namespace braid::golden

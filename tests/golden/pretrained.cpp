#include <tests/golden/pretrained.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include <braid/autograd/ops/concat.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/nn/pretrained/pretrained.h>

namespace braid::golden {
namespace {

constexpr const char* kExpected = "expected.safetensors";

/// Tensors of files as transformers holds them in memory, where the experts of a layer are two tensors:
/// gate_up_proj [E, 2 hidden, C] and down_proj [E, C, hidden].
nn::NamedTensors in_memory(const nn::NamedTensors& in_files) {
  static const std::regex expert(
      R"((.*\.)(?:mlp|block_sparse_moe)\.experts\.(\d+)\.(gate_proj|up_proj|down_proj|w1|w2|w3)\.weight)");
  std::map<std::string, std::map<int, std::map<std::string, Var>>> layers;  // [layer][expert][matrix]
  nn::NamedTensors tensors;
  for (const auto& [name, tensor] : in_files) {
    std::smatch match;
    if (std::regex_match(name, match, expert))
      layers[match[1]][std::stoi(match[2])][match[3]] = tensor;
    else
      tensors.emplace(std::regex_replace(name, std::regex("block_sparse_moe"), "mlp"), tensor);
  }
  for (auto& [layer, experts] : layers) {
    std::vector<Var> gate_up, down;
    for (auto& [number, matrices] : experts) {
      const bool mixtral = matrices.contains("w1");
      gate_up.push_back(concat({matrices[mixtral ? "w1" : "gate_proj"], matrices[mixtral ? "w3" : "up_proj"]}, 0));
      down.push_back(matrices[mixtral ? "w2" : "down_proj"]);
    }
    tensors.emplace(layer + "mlp.experts.gate_up_proj", stack(gate_up, 0).value());
    tensors.emplace(layer + "mlp.experts.down_proj", stack(down, 0).value());
  }
  return tensors;
}

nn::NamedTensors results(const nn::Transformer<>& model, const Tensor& tokens, const Tensor& targets) {
  const auto [loss, grads] = value_and_grad([&](const nn::Transformer<>& m) { return m.loss(tokens, targets); })(model);
  nn::NamedTensors found{{"out.logits", model.logits(tokens).value()}, {"out.loss", full({1}, loss, DType::f64)}};
  for (auto& [name, grad] : in_memory(nn::pretrained_tensors(grads))) found.emplace("grad." + name, grad);
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
    const nn::Transformer<> model = nn::load_pretrained(folder, {.dtype = options.dtype});
    return nn::compare(golden, results(model, golden.tensor("in.tokens"), golden.tensor("in.targets")),
                       *options.tolerance);
  };
  return check_case(expected, {{expected.name, {{"load_pretrained", check}}}});
}

}  // namespace braid::golden

#include <tests/golden/pretrained.h>

#include <braid/autograd/value_and_grad.h>
#include <braid/nn/pretrained/pretrained.h>

namespace braid::golden {
namespace {

constexpr const char* kExpected = "expected.safetensors";

nn::NamedTensors results(const nn::Transformer<>& model, const Tensor& tokens, const Tensor& targets) {
  const auto [loss, grads] = value_and_grad([&](const nn::Transformer<>& m) { return m.loss(tokens, targets); })(model);
  nn::NamedTensors found{{"out.logits", model.logits(tokens).value()}, {"out.loss", full({1}, loss, DType::f64)}};
  for (auto& [name, grad] : nn::pretrained_tensors(grads)) found.emplace("grad." + name, grad);
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

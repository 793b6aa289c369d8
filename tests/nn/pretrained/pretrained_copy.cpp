// pretrained_copy FROM TO: loads a model, saves it again in f32, and writes the logits of FROM/tokens.safetensors in
// f64 and in f32 to TO/logits.safetensors. For pretrained_test.py, which compares both with what transformers says.

#include <exception>

#include <fmt/format.h>

#include <braid/mhc/connection.h>
#include <braid/nn/pretrained/pretrained.h>

int main(int argc, char** argv) {
  using namespace braid;
  try {
    check_value(argc == 3, "expected FROM and TO");
    const std::filesystem::path from = argv[1], to = argv[2];
    const Tensor tokens = load_safetensors(from / "tokens.safetensors").tensors.at("tokens");
    const nn::Transformer<mhc::Connection> model = nn::load_pretrained(from, mhc::pretrained_connection);
    nn::save_pretrained(model, to);
    save_safetensors(
        to / "logits.safetensors",
        {{"f32", model.logits(tokens).value()},
         {"f64", nn::load_pretrained(from, mhc::pretrained_connection, {.dtype = DType::f64}).logits(tokens).value()}});
  } catch (const std::exception& error) {
    fmt::print(stderr, "pretrained_copy: {}\n", error.what());
    return 2;
  }
  return 0;
}
